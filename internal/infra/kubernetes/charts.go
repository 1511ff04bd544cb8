package kubernetes

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/infra/kubernetes/helm"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/outbound"
)

// The parameters of VNFs that are made of Helm charts.
const (
	helmKey     = "use_helm"
	chartsKey   = "using_helm_install_param"
	replicasKey = "helm_replica_values"
)

// chart is an element of using_helm_install_param: a release, the chart that it is of, and its values.
type chart struct {
	External   any      `json:"exthelmchart"` // true or "true": it comes from a repository
	Release    string   `json:"helmreleasename"`
	Parameters []string `json:"helmparameter"`
	// Of a repository. helmrepositoryname is what Tacker calls it on its hosts: nothing here.
	Name       string `json:"helmchartname"`
	Version    string `json:"helmchartversion"` // "": the highest that is no pre-release
	Repository string `json:"exthelmrepo_url"`
	// Of the package.
	Path string `json:"helmchartfile_path"`
}

func (ch *chart) external() bool { return isTrue(ch.External) }

// isTrue tells whether a parameter that may be a text says yes.
func isTrue(v any) bool { return strings.EqualFold(fmt.Sprint(v), "true") }

// label is what the chart is called in messages, and in what is kept.
func (ch *chart) label() string {
	if ch.external() {
		return ch.Name + " of " + outbound.Shown(ch.Repository)
	}
	return ch.Path
}

// patient gives the steps of a VNF that is made of charts the time that helm may take for them: the driver's own waits are no longer.
func (d *Driver) patient(x *lcm.Execution, steps []lcm.Step) []lcm.Step {
	given := requestOf(x).AdditionalParams
	if d.cfg.Helm == nil || !isTrue(given[helmKey]) {
		return steps
	}
	list, _ := given[chartsKey].([]any)
	for n := range steps {
		if steps[n].Effect && steps[n].Timeout > 0 { // to read, to roll back and to change; to render takes no time
			steps[n].Timeout += time.Duration(3*len(list)) * d.cfg.Helm.Timeout()
		}
	}
	return steps
}

// complete checks the charts, and names the releases that have no name: after the instance, and by their number. Terminal: one
// lacks something.
func (p *params) complete(x *lcm.Execution) error {
	missing := func(key string) error {
		return lcm.Errorf(lcm.KindTerminal, "Parameter input values missing for the key '%s'", key)
	}
	if len(p.Charts) == 0 {
		return missing(chartsKey)
	}
	seen := map[string]bool{}
	for n := range p.Charts {
		ch := &p.Charts[n]
		switch {
		case ch.External == nil:
			return missing("exthelmchart")
		case ch.external() && ch.Name == "":
			return missing("helmchartname")
		case ch.external() && ch.Repository == "":
			return missing("exthelmrepo_url")
		case !ch.external() && ch.Path == "":
			return missing("helmchartfile_path")
		}
		if ch.Release == "" {
			ch.Release = "vnf-" + x.Instance.ID
			if n > 0 {
				ch.Release += fmt.Sprintf("-%d", n+1)
			}
		}
		if !helm.ValidName(ch.Release) {
			return lcm.Errorf(lcm.KindTerminal, "additionalParams.%s: %q is no name of a Helm release", chartsKey, ch.Release)
		}
		if seen[ch.Release] {
			return lcm.Errorf(lcm.KindTerminal, "additionalParams.%s: there are two releases %s", chartsKey, ch.Release)
		}
		seen[ch.Release] = true
		for _, value := range ch.Parameters {
			if name, _, ok := strings.Cut(value, "="); !ok || name == "" {
				return lcm.Errorf(lcm.KindTerminal, "additionalParams.%s: a helmparameter of release %s is not of the form name=value", chartsKey, ch.Release)
			}
		}
	}
	if len(p.Replicas) == 0 || x.Flavour == nil {
		return nil
	}
	for _, a := range x.Flavour.Aspects {
		if p.Replicas[a.ID] == "" {
			return lcm.Errorf(lcm.KindTerminal, "Replica value for aspectId '%s' is missing", a.ID)
		}
	}
	return nil
}

// valueOf returns the value of a chart that is the number of replicas of a VDU, "" for none: it has none then, or is scaled by its
// scale subresource.
func (p *params) valueOf(x *lcm.Execution, vdu string) string {
	if vdu == "" || x.Flavour == nil {
		return ""
	}
	for aspect, value := range p.Replicas {
		if a, ok := x.Flavour.Aspect(aspect); ok && a.Scales(vdu) {
			return value
		}
	}
	return ""
}

// sizes returns the values by which a release has the replicas that it is to have: those of the objects that are recorded, else of
// the instantiation level that the request names.
func (p *params) sizes(x *lcm.Execution, s *infra, release string) ([]string, error) {
	numbers := map[string]int{}
	set := func(value string, n int) error {
		if was, ok := numbers[value]; ok && was != n {
			return lcm.Errorf(lcm.KindTerminal, "additionalParams.%s: %s is to be %d and %d: the VDUs of its aspect differ in number", replicasKey, value, was, n)
		}
		numbers[value] = n
		return nil
	}
	known := false
	for n := range s.Objects {
		o := &s.Objects[n]
		known = known || o.VDU != ""
		if value := p.valueOf(x, o.VDU); value != "" && o.Release == release && o.Replicas != nil && *o.Replicas != unread {
			if err := set(value, *o.Replicas); err != nil {
				return nil, err
			}
		}
	}
	if level := requestOf(x).InstantiationLevelId; !known && level != "" && x.Flavour != nil {
		for _, vdu := range x.Flavour.VDUs {
			value := p.valueOf(x, vdu.Name)
			if to := p.Mapping[vdu.Name].Release; value == "" || to != "" && to != release {
				continue
			}
			count, err := x.Flavour.InstanceCount(vdu.Name, level)
			if err != nil {
				return nil, lcm.Errorf(lcm.KindTerminal, "%w", err)
			}
			if err := set(value, count); err != nil {
				return nil, err
			}
		}
	}
	return assignments(numbers), nil
}

// assignments words numbers as values of a chart.
func assignments(numbers map[string]int) []string {
	var out []string
	for value, n := range numbers {
		out = append(out, fmt.Sprintf("%s=%d", value, n))
	}
	slices.Sort(out)
	return out
}

// archive is a chart's archive.
type archive struct {
	raw             []byte
	version, digest string // digest: SHA-256
}

// archive returns a chart, in the version that is recorded, else in the one that is asked for. Terminal: it is not there, or not what
// the repository says it is.
func (d *Driver) archive(ctx context.Context, x *lcm.Execution, ch *chart, recorded string) (*archive, error) {
	out := &archive{version: cmp.Or(ch.Version, recorded)}
	var err error
	if ch.external() {
		err = d.download(ctx, ch, out)
	} else {
		err = d.unpack(ctx, x, ch, out)
	}
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(out.raw)
	out.digest = hex.EncodeToString(sum[:])
	return out, nil
}

// unpack reads a chart of the package.
func (d *Driver) unpack(ctx context.Context, x *lcm.Execution, ch *chart, out *archive) error {
	content, err := x.Files(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	if strings.Contains(ch.Path, "://") {
		return lcm.Errorf(lcm.KindTerminal, "helmchartfile_path of release %s is a path in the package; a chart of a repository has exthelmchart true", ch.Release)
	}
	out.raw, err = d.file(ctx, x, content, ch.Path)
	return err
}

// download fetches a chart from its repository, as its index says where it is.
func (d *Driver) download(ctx context.Context, ch *chart, out *archive) error {
	if d.cfg.Fetch == nil {
		return lcm.Errorf(lcm.KindTerminal, "Helm repository %s: no host is allowed to fetch from (kubernetes.uri_hosts)", outbound.Shown(ch.Repository))
	}
	base, err := url.Parse(strings.TrimRight(ch.Repository, "/") + "/index.yaml")
	if err != nil || base.Scheme != "http" && base.Scheme != "https" {
		return lcm.Errorf(lcm.KindTerminal, "exthelmrepo_url of release %s is not an http or https URL", ch.Release)
	}
	raw, err := d.cfg.Fetch.Fetch(ctx, base.String())
	if err != nil {
		return err
	}
	found, err := choose(raw, ch, out.version)
	if err != nil {
		return err
	}
	at, err := base.Parse(found.URLs[0])
	if err != nil {
		return lcm.Errorf(lcm.KindTerminal, "chart %s: the index says where it is by no URL", ch.label())
	}
	if out.raw, err = d.cfg.Fetch.Fetch(ctx, at.String()); err != nil {
		return err
	}
	out.version = found.Version
	sum := sha256.Sum256(out.raw)
	if want := strings.TrimPrefix(found.Digest, "sha256:"); want != "" && want != hex.EncodeToString(sum[:]) {
		return lcm.Errorf(lcm.KindTerminal, "chart %s %s: what is fetched has not the SHA-256 that the repository's index says", ch.label(), found.Version)
	}
	return nil
}

// entry is a version of a chart in a repository's index.
type entry struct {
	Version string   `json:"version"`
	URLs    []string `json:"urls"`
	Digest  string   `json:"digest"`
}

// choose finds a version of a chart in a repository's index: the one that is wanted, else the highest that is no pre-release.
// Terminal: there is none.
func choose(raw []byte, ch *chart, wanted string) (*entry, error) {
	var index struct {
		Entries map[string][]entry `json:"entries"`
	}
	if err := yaml.Unmarshal(raw, &index); err != nil {
		return nil, lcm.Errorf(lcm.KindTerminal, "Helm repository %s: its index.yaml cannot be read: %s", outbound.Shown(ch.Repository), cut(err.Error()))
	}
	var best *entry
	var highest *version.Version
	for n := range index.Entries[ch.Name] {
		e := &index.Entries[ch.Name][n]
		if wanted != "" {
			if strings.TrimPrefix(e.Version, "v") == strings.TrimPrefix(wanted, "v") {
				best = e
				break
			}
			continue
		}
		v, err := version.ParseSemantic(e.Version)
		if err == nil && v.PreRelease() == "" && (highest == nil || highest.LessThan(v)) {
			best, highest = e, v
		}
	}
	switch {
	case len(index.Entries[ch.Name]) == 0:
		return nil, lcm.Errorf(lcm.KindTerminal, "Helm repository %s has no chart %s", outbound.Shown(ch.Repository), ch.Name)
	case best == nil:
		return nil, lcm.Errorf(lcm.KindTerminal, "Helm repository %s has no version %s of chart %s", outbound.Shown(ch.Repository), cmp.Or(wanted, "that is no pre-release"), ch.Name)
	case len(best.URLs) == 0:
		return nil, lcm.Errorf(lcm.KindTerminal, "Helm repository %s does not say where chart %s %s is", outbound.Shown(ch.Repository), ch.Name, best.Version)
	}
	return best, nil
}

// hookAnnotation is on what helm runs at points of a release's life, and is no part of what the release consists of.
const hookAnnotation = "helm.sh/hook"

// charted returns the objects that the VNF's charts render to, in the order of manifests; p gets the releases and their hooks.
// Terminal: a chart does not render, or has an object for another namespace than the VNF's.
func (d *Driver) charted(ctx context.Context, x *lcm.Execution, c *cluster, p *params) ([]item, error) {
	if d.cfg.Helm == nil {
		return nil, lcm.Errorf(lcm.KindTerminal, "additionalParams.%s: this VNF manager runs no helm", helmKey)
	}
	s, err := loadInfra(x.Instance)
	if err != nil {
		return nil, err
	}
	ns, err := namespaceOf(p.Namespace, nil)
	if err != nil {
		return nil, err
	}
	if s.Namespace != "" && x.Op.Operation != sol003.LcmOperationTypeInstantiate {
		ns = s.Namespace
	}
	of, err := c.capabilities(ctx)
	if err != nil {
		return nil, err
	}
	var out []item
	seen := map[string]string{}
	left := fresh()
	sum := sha256.New()
	for n := range p.Charts {
		ch := &p.Charts[n]
		was := s.release(ch.Release)
		recorded := ""
		if was != nil && s.VnfdID == x.Instance.VnfdID {
			recorded = was.Version
		}
		got, err := d.archive(ctx, x, ch, recorded)
		if err != nil {
			return nil, err
		}
		_, _ = fmt.Fprintf(sum, "%s:", got.digest)
		r := release{Name: ch.Release, Chart: ch.label(), Version: got.version, Digest: got.digest}
		p.releases = append(p.releases, r)
		sizes, err := p.sizes(x, s, ch.Release)
		if err != nil {
			return nil, err
		}
		text, err := d.cfg.Helm.Render(ctx, helm.Release{
			Name: ch.Release, Namespace: ns, Chart: got.raw, Set: slices.Concat(ch.Parameters, sizes),
		}, *of, was != nil && was.Since != "")
		if err != nil {
			return nil, err
		}
		docs, err := left.parse("release "+ch.Release, text)
		if err != nil {
			return nil, err
		}
		found, err := c.identifyAll(ctx, docs, seen, func(i *item) error { return i.of(ch.Release, ns) }, true)
		if err != nil {
			return nil, err
		}
		for _, i := range found {
			if i.Hook {
				p.hooks = append(p.hooks, i.object)
			} else {
				out = append(out, i)
			}
		}
	}
	p.digest = hex.EncodeToString(sum.Sum(nil))
	if len(out) == 0 {
		return nil, lcm.Errorf(lcm.KindTerminal, "there is no object in the charts of %s", chartsKey)
	}
	if err := assign(out, x.Flavour, p.Mapping); err != nil {
		return nil, err
	}
	sorted(out, func(i item) *object { return &i.object })
	return out, nil
}

// of makes an item one of a release. Terminal: it is for another namespace than the VNF's.
func (i *item) of(release, ns string) error {
	if i.given != "" && i.given != ns && i.Namespaced {
		return lcm.Errorf(lcm.KindTerminal, "%s: the chart has %s %s for namespace %s; the objects of a VNF are all in one namespace, which is %s for this one",
			i.at, i.Kind, i.Name, i.given, ns)
	}
	if i.groupKind() == "Namespace" {
		return lcm.Errorf(lcm.KindTerminal, "%s: the chart makes namespace %s, and with it would go all that others have in it when the release is uninstalled; name the VNF's namespace in additionalParams.%s",
			i.at, i.Name, namespaceKey)
	}
	i.given = ""
	i.Release = release
	i.Hook = i.GetAnnotations()[hookAnnotation] != ""
	if i.groupKind() == "apps/StatefulSet" {
		i.Selector = labelsIn(i.Object, "spec", "selector", "matchLabels")
	}
	return nil
}

// capabilities finds out what charts may ask about the cluster.
func (c *cluster) capabilities(ctx context.Context) (*helm.Capabilities, error) {
	ctx, cancel := c.call(ctx)
	defer cancel()
	read := func(at string, into any) error {
		raw, err := c.raw.Get().AbsPath(at).SetHeader("Accept", aggregated+",application/json").Do(ctx).Raw()
		if err == nil {
			err = json.Unmarshal(raw, into)
		}
		if err != nil {
			return c.wrap("read "+at, err)
		}
		return nil
	}
	var is struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := read("/version", &is); err != nil {
		return nil, err
	}
	out := &helm.Capabilities{Version: is.GitVersion, APIs: []string{"v1"}}
	for _, at := range []string{"/api", "/apis"} {
		var known discovered
		if err := read(at, &known); err != nil {
			return nil, err
		}
		out.APIs = append(out.APIs, known.apis()...)
	}
	slices.Sort(out.APIs)
	out.APIs = slices.Compact(out.APIs)
	return out, nil
}

// aggregated asks for all kinds of all groups at once, which API servers before Kubernetes 1.27 do not tell.
const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"

// discovered is what an API server serves: groups, their versions and the kinds of these, or of an older one the groups alone.
type discovered struct {
	Items []struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Versions []struct {
			Version   string `json:"version"`
			Resources []struct {
				ResponseKind metav1.GroupVersionKind `json:"responseKind"`
			} `json:"resources"`
		} `json:"versions"`
	} `json:"items"`
	Groups []struct {
		Versions []struct {
			GroupVersion string `json:"groupVersion"`
		} `json:"versions"`
	} `json:"groups"`
}

// apis returns what charts may ask for: "apps/v1" and "apps/v1/Deployment".
func (d *discovered) apis() []string {
	var out []string
	for _, g := range d.Groups {
		for _, v := range g.Versions {
			out = append(out, v.GroupVersion)
		}
	}
	for _, g := range d.Items {
		for _, v := range g.Versions {
			gv := schema.GroupVersion{Group: g.Metadata.Name, Version: v.Version}.String()
			out = append(out, gv)
			for _, r := range v.Resources {
				if r.ResponseKind.Kind != "" {
					out = append(out, gv+"/"+r.ResponseKind.Kind)
				}
			}
		}
	}
	return out
}

// chartOf returns the chart of a release.
func (p *params) chartOf(release string) (*chart, error) {
	n := slices.IndexFunc(p.Charts, func(ch chart) bool { return ch.Release == release })
	if n < 0 {
		return nil, lcm.Errorf(lcm.KindTerminal, "additionalParams.%s has no release %s", chartsKey, release)
	}
	return &p.Charts[n], nil
}
