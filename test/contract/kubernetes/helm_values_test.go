package kubernetes_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/internal/infra/kubernetes/helm"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// TestHelmValues gives helm values in the way that keeps them off its command line, and by --set: a chart gets the same, types
// included, and what the one refuses the other refuses.
func TestHelmValues(t *testing.T) {
	t.Parallel()
	binary := labHelm(t)
	archive := chart(t, "values")
	at := filepath.Join(t.TempDir(), "values.tgz")
	must(t, os.WriteFile(at, archive, 0o600))
	runner := helm.New(helm.Config{Binary: binary, TempDir: t.TempDir()}, slog.New(slog.NewTextHandler(t.Output(), nil)))
	same := func(t *testing.T, set []string, fails bool) {
		t.Helper()
		got, err := runner.Render(t.Context(), helm.Release{Name: "same", Namespace: "ns", Chart: archive, Set: set}, helm.Capabilities{}, false)
		if err != nil && !lcm.Is(err, lcm.KindTerminal) || (err != nil) != fails {
			t.Errorf("%q: %v", set, err)
		}
		args := []string{"template", "same", at, "--namespace=ns"}
		for _, s := range set {
			args = append(args, "--set="+s)
		}
		var said bytes.Buffer
		cmd := exec.CommandContext(t.Context(), binary, args...) //nolint:gosec // the lab's
		cmd.Stderr = &said
		want, bySet := cmd.Output()
		if (bySet != nil) != fails {
			t.Errorf("%q, by --set: %v %s", set, bySet, said.Bytes())
		}
		if diff := cmp.Diff(string(want), string(got)); err == nil && diff != "" {
			t.Errorf("%q: what is rendered differs (-set +ours):\n%s", set, diff)
		}
	}
	// What says the same beside the others goes into one run.
	beside := []string{
		"a.number=1", "a.negative=-1", "a.zero=0", "a.million=1000000", "a.large=9223372036854775807", "a.larger=9223372036854775808",
		"a.plus=+5", "a.minus0=-0", "a.padded=007", "a.float=1.5", "a.exponent=1e3", "a.hex=0x1f", "a.octal=0o7", "a.parted=1_000",
		"a.true=true", "a.True=True", "a.FALSE=FALSE", "a.yes=yes", "a.on=on", "a.n=n", "a.null=null", "a.Null=NULL", "a.tilde=~", "a.nan=.nan",
		"a.empty=", "a.spaces=  x  ", "a.blank= true", "a.date=2026-01-02", "a.time=12:30:45", "a.equals=x=y==", "a.braces=x{y}", "a.brackets=[x]",
		"a.colon=x: y", "a.hash=x #y", "a.star=*x", "a.and=&x", "a.bang=!!int 3", "a.pipe=|", "a.dash=- x", "a.documents=x\n---\ny: z\n", "a.lines=x\r\ny\ttab",
		"a.quotes=\"'`", "a.template=x {{ .Release.Name }}", "a.unicode=ä☃😀\u0085\u2028\ufeff\x7f", "a.less=<&>",
		"b.one=1,b.two=x,b.three=true", "b.comma=x\\,y", "b.trailing=x,", "b.backslash=\\\\", "b.escaped=\\1\\t\\x", "b.last=x\\",
		"c.list={1,x,true,null,1.5}", "c.empty={}", "c.one={x}", "c.gap={x,},c.then=y", "c.next={x}c.then2=y", "c.escaped={x\\,y,\\{z\\}}", "c.spaces={ x, y }",
		"d.at[2]=x", "d.numbers[1]=7", "d.maps[0].b=1", "d.maps[0].c=x", "d.maps[2].b={1,2}", "d.nested[0][1][0]=3", "d.over={a,b}", "d.over[1]=5", "d.over[2]=c",
		"d.replaced={x}", "d.replaced[0].y=1", "d.end[0]=", "d.plus[+1]=x",
		"e\\.f.g\\,h\\=i\\[0\\]=1", "e\\.f.j\\\\=x", "e\\.f.ä ö=1", "e\\.f.\"quoted\"=2", "e\\.f.{=3", "e\\.f.<<=4", "e\\.f.true=5", "e\\.f.1=6", "e\\.f.#=7",
		"f.same=x", "f.same=1", "f.other=1", "f.other=x", "f.list=x", "f.list={1}", "f.map.x=1", "f.map=y", "=no name", ".g=no name", "[0]=no name",
		// Of what the chart has itself.
		"text=null", "number=null", "flag=false", "gone=null", "list[0]=x", "map.in=null", "map.w=1",
	}
	t.Run("beside one another", func(t *testing.T) { same(t, beside, false) })
	for n, set := range [][]string{
		{},
		{"replicas=3"},
		{"list={x}", "map.in.z=null", "map.x=y"},
		{"map=null", "list=null"},
		{"map.in.q=1", "number=4"},
		{"list[1].a=null", "text={}"},
		{"a[0].=x"},
		{"a=1,b."}, {"a=1,b[0"}, {"a=1,b[0]"}, {"a[0].b="}, {"a[0].b[0"}, {"a.b="}, {"a=x\\"},
	} {
		t.Run(fmt.Sprintf("set %d", n), func(t *testing.T) { same(t, set, false) })
	}
	for n, set := range [][]string{
		{"a=x,y"}, {"a={{ .Release.Name }}"}, {"a={x,"}, {"a={x"}, {"a[x]=1"}, {"a[-1]=1"}, {"a[0]b=1"}, {"a=1", "a.b=2"}, {"a=null", "a.b=1"}, {"a={x}", "a.b=1"}, {"a.b=1", "a[0]=1"},
		{"a={x}", "a[0][0]=1"}, {"a.=1"}, {"a[65537]=1"}, {strings.Repeat("a.", 31) + "b=1"},
	} {
		t.Run(fmt.Sprintf("refused %d", n), func(t *testing.T) { same(t, set, true) })
	}
}
