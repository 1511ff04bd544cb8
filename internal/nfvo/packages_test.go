package nfvo_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/csar/csartest"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/nfvo"
	"github.com/seed-f1a0ccf1/vnfm/internal/nfvo/nfvotest"
	"github.com/seed-f1a0ccf1/vnfm/internal/outbound"
	"github.com/seed-f1a0ccf1/vnfm/internal/pkgm"
	"github.com/seed-f1a0ccf1/vnfm/internal/store"
	"github.com/seed-f1a0ccf1/vnfm/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var (
	mine   = lcm.Scope{ProjectID: "p1"}
	theirs = lcm.Scope{ProjectID: "p2"}
)

const (
	vnfd1 = "b1bb0ce7-ebca-4fa7-95ed-4840d70a1177"
	vnfd2 = "c1bb0ce7-ebca-4fa7-95ed-4840d70a1177"
	pkg1  = "11111111-ebca-4fa7-95ed-4840d70a1177"
	pkg2  = "22222222-ebca-4fa7-95ed-4840d70a1177"
)

func zip(t testing.TB, vnfdID string) []byte {
	t.Helper()
	return csartest.Zip(t, map[string][]byte{
		"TOSCA-Metadata/TOSCA.meta": []byte("TOSCA-Meta-File-Version: 1.0\nCSAR-Version: 1.1\nCreated-By: test\nEntry-Definitions: Definitions/top.yaml\n"),
		"Definitions/top.yaml": []byte(`tosca_definitions_version: tosca_simple_yaml_1_2
topology_template:
  node_templates:
    VNF:
      type: tosca.nodes.nfv.VNF
      properties:
        descriptor_id: ` + vnfdID + `
        descriptor_version: '1.0'
        provider: Company
        product_name: Sample
        software_version: '2.0'
        flavour_id: simple
        flavour_description: Simple
    VDU1:
      type: tosca.nodes.nfv.Vdu.Compute
      properties: {name: VDU1}
`),
	})
}

// node is a node of this manager with its own workers.
type node struct {
	*nfvo.Packages
	local *pkgm.Service
	st    *store.Store
}

func newNode(t testing.TB, url string, cfg nfvo.PackagesConfig) *node {
	t.Helper()
	st, err := store.Open(context.Background(), store.Config{URL: url, Sealer: storetest.Sealer(t), Log: storetest.Log()})
	if err != nil {
		t.Fatal(err)
	}
	svc := pkgm.New(pkgm.Config{Node: st.NodeID, SizeCap: 1 << 20}, st, storetest.Log())
	if cfg.RetryWait == 0 {
		cfg.RetryWait = time.Millisecond
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 30 * time.Second
	}
	p, err := nfvo.NewPackages(cfg, svc, storetest.Log())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, served := make(chan struct{}), make(chan error, 1)
	go func() {
		served <- st.Serve(ctx, store.WorkConfig{
			RunOperation:  func(context.Context, string, string, int64) (time.Duration, bool, error) { return 0, true, nil },
			RunOnboarding: svc.Run, Operations: 1, Onboardings: 2,
			FetchCooldown: 5 * time.Millisecond, FetchPoll: 20 * time.Millisecond, Retention: time.Hour, Watch: 100 * time.Millisecond,
		}, func(ok bool) {
			if ok {
				close(ready)
			}
		})
	}()
	t.Cleanup(func() {
		p.Close()
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		st.Close()
	})
	select {
	case <-ready:
	case err := <-served:
		t.Fatal(err)
	}
	return &node{p, svc, st}
}

// again makes Packages of another configuration over what the node has.
func (n *node) again(t testing.TB, cfg nfvo.PackagesConfig) *nfvo.Packages {
	t.Helper()
	cfg.RetryWait = time.Millisecond
	p, err := nfvo.NewPackages(cfg, n.local, storetest.Log())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func (n *node) count(t testing.TB, what string) (c int) {
	t.Helper()
	if err := n.st.Pool.QueryRow(context.Background(), what).Scan(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

func in(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// unusable checks the refusal of a request that names a VNFD without package.
func unusable(t testing.TB, err error, detail string) {
	t.Helper()
	refused(t, err, lcm.KindInvalid, detail)
	var e *lcm.Error
	if errors.As(err, &e); e.Status != http.StatusUnprocessableEntity {
		t.Errorf("status %d", e.Status)
	}
}

func TestFetched(t *testing.T) {
	o := nfvotest.Start(t)
	content := zip(t, vnfd1)
	o.Put(nfvotest.Package{Info: nfvotest.PackageInfo(pkg2, vnfd2, zip(t, vnfd2)), Zip: zip(t, vnfd2)})
	o.Put(nfvotest.Package{Info: nfvotest.PackageInfo(pkg1, vnfd1, content), Zip: content, Failures: 1, Cut: 1})
	n := newNode(t, storetest.URL(t), nfvo.PackagesConfig{BaseURL: o.PackagesURL(), Retries: 2})
	ctx := in(t)
	p, err := n.PackageByVnfd(ctx, mine, vnfd1, true)
	if err != nil {
		t.Fatal(err)
	}
	if p.ID != pkg1 || p.ProjectID != "p1" || p.Descriptor.ID != vnfd1 || p.OperationalState != sol003.PackageOperationalStateTypeEnabled || p.OnboardingState != sol003.PackageOnboardingStateTypeOnboarded {
		t.Errorf("%+v", p)
	}
	body, size, err := n.local.Content(ctx, mine, pkg1)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(body)
	if err != nil || !bytes.Equal(got, content) || size != int64(len(content)) {
		t.Errorf("the content differs: %v", err)
	}
	// From now on it is here; for another project it is not there.
	asked := o.Listings()
	if _, err := n.PackageByVnfd(ctx, mine, vnfd1, true); err != nil {
		t.Error(err)
	}
	_, err = n.PackageByVnfd(ctx, theirs, vnfd1, false)
	refused(t, err, lcm.KindNotFound, "Can not find requested vnf package vnfd: "+vnfd1)
	if o.Listings() != asked || o.Downloads(pkg1) != 3 || o.Downloads(pkg2) != 0 {
		t.Errorf("listed %d times more, %d and %d downloads", o.Listings()-asked, o.Downloads(pkg1), o.Downloads(pkg2))
	}
	if c := n.count(t, `SELECT count(*) FROM contents`); c != 1 {
		t.Errorf("%d contents", c)
	}
}

func TestNotToBeHad(t *testing.T) {
	o := nfvotest.Start(t)
	n := newNode(t, storetest.URL(t), nfvo.PackagesConfig{BaseURL: o.PackagesURL() + "/vnf_packages/", Retries: 1})
	hasty := n.again(t, nfvo.PackagesConfig{BaseURL: o.PackagesURL(), Retries: 1, Timeout: 2 * time.Second})
	good := zip(t, vnfd1)
	with := func(change func(*nfvotest.Package)) nfvotest.Package {
		p := nfvotest.Package{Info: nfvotest.PackageInfo(pkg1, vnfd1, good), Zip: good}
		change(&p)
		return p
	}
	for name, c := range map[string]struct {
		p    nfvotest.Package
		kind lcm.Kind
		says string
	}{
		"another VNFD": {with(func(p *nfvotest.Package) { p.Info.VnfdId = vnfd2 }), lcm.KindInvalid,
			"Can not find requested to NFVO, vnf package info: vnfdId=[" + vnfd1 + "]"},
		"not onboarded": {with(func(p *nfvotest.Package) { p.Info.OnboardingState = "PROCESSING" }), lcm.KindInvalid, "Can not find requested to NFVO"},
		"disabled":      {with(func(p *nfvotest.Package) { p.Info.OperationalState = "DISABLED" }), lcm.KindInvalid, "is DISABLED at the NFVO"},
		"no zip":        {with(func(p *nfvotest.Package) { p.Zip, p.Info.Checksum = []byte("hello"), nil }), lcm.KindInvalid, "could not be onboarded"},
		"checksum": {with(func(p *nfvotest.Package) { p.Info.Checksum.Hash = strings.Repeat("ab", 32) }), lcm.KindInvalid,
			"not " + strings.Repeat("ab", 32) + " as it should"},
		"strange checksum":  {with(func(p *nfvotest.Package) { p.Info.Checksum.Algorithm = "crc32" }), lcm.KindInvalid, `is made with "crc32"`},
		"too large":         {with(func(p *nfvotest.Package) { p.Zip, p.Info.Checksum = make([]byte, 2<<20), nil }), lcm.KindTooLarge, "larger than"},
		"failing":           {with(func(p *nfvotest.Package) { p.Failures = 9 }), lcm.KindUnavailable, "The NFVO answered 500 to the content of VNF package " + pkg1 + ": a bad day"},
		"cut":               {with(func(p *nfvotest.Package) { p.Cut = 9 }), lcm.KindUnavailable, "broke off"},
		"stalled":           {with(func(p *nfvotest.Package) { p.Stall = true }), lcm.KindUnavailable, "sent nothing for 2s"},
		"stalled at once":   {with(func(p *nfvotest.Package) { p.Gate = make(chan struct{}) }), lcm.KindUnavailable, "sent nothing for 2s"},
		"an id that climbs": {with(func(p *nfvotest.Package) { p.Info.Id = ".." }), lcm.KindTerminal, `id cannot be: ".."`},
	} {
		t.Run(name, func(t *testing.T) {
			o.Put(c.p)
			defer o.Put(with(func(p *nfvotest.Package) { p.Info.Id, p.Info.VnfdId = c.p.Info.Id, "gone" }))
			asked := n.Packages
			if c.p.Stall || c.p.Gate != nil {
				asked = hasty
			}
			_, err := asked.PackageByVnfd(in(t), mine, vnfd1, false)
			refused(t, err, c.kind, c.says)
			if c.kind == lcm.KindInvalid {
				unusable(t, err, c.says)
			}
			if c := n.count(t, `SELECT count(*) FROM contents`); c != 0 {
				t.Errorf("%d contents are left", c)
			}
		})
	}
	t.Run("at last", func(t *testing.T) { // what failed before is no hindrance
		o.Put(with(func(*nfvotest.Package) {}))
		p, err := n.PackageByVnfd(in(t), mine, vnfd1, false)
		if err != nil || p.ID != pkg1 {
			t.Fatal(p, err)
		}
		if c := n.count(t, `SELECT count(*) FROM vnf_packages`); c != 1 {
			t.Errorf("%d packages", c)
		}
	})
	t.Run("it holds another", func(t *testing.T) {
		lie := nfvotest.PackageInfo(pkg2, "other", zip(t, vnfd2))
		o.Put(nfvotest.Package{Info: lie, Zip: zip(t, vnfd2)})
		for range 2 {
			_, err := n.PackageByVnfd(in(t), mine, "other", false)
			unusable(t, err, "VNF package "+pkg2+", which the NFVO has for VNFD other, holds another VNFD.")
		}
	})
	t.Run("the package is another project's", func(t *testing.T) {
		o.Put(nfvotest.Package{Info: nfvotest.PackageInfo(pkg1, "another", good), Zip: good})
		_, err := n.PackageByVnfd(in(t), theirs, "another", false)
		refused(t, err, lcm.KindConflict, "VNF package "+pkg1+" is another project's.")
	})
}

func TestBadLists(t *testing.T) {
	o := nfvotest.Start(t)
	n := newNode(t, storetest.URL(t), nfvo.PackagesConfig{BaseURL: o.PackagesURL(),
		Login: outbound.Config{Auth: outbound.Auth{Basic: &outbound.Basic{UserName: "u", Password: "geheim"}}}})
	hasty := n.again(t, nfvo.PackagesConfig{BaseURL: o.PackagesURL(), Timeout: 100 * time.Millisecond})
	for name, c := range map[string]struct {
		manner nfvotest.Manner
		kind   lcm.Kind
		says   string
	}{
		"garbage": {nfvotest.Manner{Status: 200, Body: "<html>"}, lcm.KindTerminal, "with what is no list of VNF packages"},
		"null":    {nfvotest.Manner{Status: 200, Body: "null"}, lcm.KindInvalid, "Can not find requested to NFVO"},
		"large":   {nfvotest.Manner{Status: 200, Body: "[" + strings.Repeat(" ", 4<<20) + "]"}, lcm.KindTerminal, "with more than"},
		"403":     {nfvotest.Manner{Status: 403}, lcm.KindForbidden, "The NFVO refused the list of VNF packages"},
		"302":     {nfvotest.Manner{Status: 302, Header: http.Header{"Location": {"http://169.254.169.254/"}}}, lcm.KindTerminal, "redirects are not followed"},
		"500":     {nfvotest.Manner{Status: 500}, lcm.KindUnavailable, "The NFVO answered 500 to the list"},
		"hangs":   {nfvotest.Manner{Hang: true}, lcm.KindUnavailable, "did not answer within 100ms"},
	} {
		t.Run(name, func(t *testing.T) {
			o.Behave(c.manner)
			asked := n.Packages
			if c.manner.Hang {
				asked = hasty
			}
			_, err := asked.PackageByVnfd(in(t), mine, vnfd1, false)
			refused(t, err, c.kind, c.says)
		})
	}
	o.Behave(nfvotest.Manner{})
	for _, vnfd := range []string{"it's, (odd)", " blank ", "a/b?c=d&e;f%20#g", strings.Repeat("x", 3000), "nul\x00"} {
		_, err := n.PackageByVnfd(in(t), mine, vnfd, false)
		unusable(t, err, "Can not find requested to NFVO, vnf package info: vnfdId=["+vnfd+"]")
	}
	o.Put(nfvotest.Package{Info: nfvotest.PackageInfo(pkg1, "", nil)})
	_, err := n.PackageByVnfd(in(t), mine, "", false)
	refused(t, err, lcm.KindNotFound, "")
}

// TestFetchedOnce: however many ask at once, on two nodes, the package is downloaded once.
func TestFetchedOnce(t *testing.T) {
	o := nfvotest.Start(t)
	gate := make(chan struct{})
	content := zip(t, vnfd1)
	o.Put(nfvotest.Package{Info: nfvotest.PackageInfo("not a uuid/but an id", vnfd1, content), Zip: content, Gate: gate})
	url := storetest.URL(t)
	nodes := []*node{newNode(t, url, nfvo.PackagesConfig{BaseURL: o.PackagesURL()}), newNode(t, url, nfvo.PackagesConfig{BaseURL: o.PackagesURL()})}
	ctx := in(t)
	var wg sync.WaitGroup
	ids := make([]string, 20)
	for k := range ids {
		wg.Go(func() {
			p, err := nodes[k%2].PackageByVnfd(ctx, mine, vnfd1, false)
			if err != nil {
				t.Error(err)
				return
			}
			ids[k] = p.ID
		})
	}
	for o.Downloads("not a uuid/but an id") == 0 && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	close(gate)
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] || len(id) != 36 {
			t.Fatalf("ids %v", ids)
		}
	}
	if d := o.Downloads("not a uuid/but an id"); d != 1 {
		t.Errorf("%d downloads", d)
	}
	if c := nodes[0].count(t, `SELECT count(*) FROM vnf_packages`); c != 1 {
		t.Errorf("%d packages", c)
	}
}

// TestSlowPackage: who asks does not wait for ever, and the package comes all the same.
func TestSlowPackage(t *testing.T) {
	o := nfvotest.Start(t)
	gate := make(chan struct{})
	content := zip(t, vnfd1)
	o.Put(nfvotest.Package{Info: nfvotest.PackageInfo(pkg1, vnfd1, content), Zip: content, Gate: gate})
	n := newNode(t, storetest.URL(t), nfvo.PackagesConfig{BaseURL: o.PackagesURL(), Wait: 10 * time.Millisecond, AtOnce: 1})
	ctx := in(t)
	_, err := n.PackageByVnfd(ctx, mine, vnfd1, false)
	refused(t, err, lcm.KindUnavailable, "The package of VNFD "+vnfd1+" is being fetched from the NFVO. Try again.")
	_, err = n.PackageByVnfd(ctx, mine, vnfd2, false)
	refused(t, err, lcm.KindUnavailable, "cannot be fetched from the NFVO now")
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := n.PackageByVnfd(gone, mine, vnfd1, false); err == nil {
		t.Error("who went away is answered")
	}
	close(gate)
	for {
		p, err := n.PackageByVnfd(ctx, mine, vnfd1, false)
		if err == nil {
			if p.ID != pkg1 {
				t.Errorf("%+v", p)
			}
			break
		}
		refused(t, err, lcm.KindUnavailable, "")
	}
	if d := o.Downloads(pkg1); d != 1 {
		t.Errorf("%d downloads", d)
	}
}

// TestClosed: a node that stops ends what it fetches; another does it anew.
func TestClosed(t *testing.T) {
	o := nfvotest.Start(t)
	gate := make(chan struct{})
	content := zip(t, vnfd1)
	o.Put(nfvotest.Package{Info: nfvotest.PackageInfo(pkg1, vnfd1, content), Zip: content, Gate: gate})
	url := storetest.URL(t)
	a, b := newNode(t, url, nfvo.PackagesConfig{BaseURL: o.PackagesURL()}), newNode(t, url, nfvo.PackagesConfig{BaseURL: o.PackagesURL()})
	ctx := in(t)
	answered := make(chan error)
	go func() {
		_, err := a.PackageByVnfd(ctx, mine, vnfd1, false)
		answered <- err
	}()
	for o.Downloads(pkg1) == 0 && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	others := make(chan error)
	go func() { // waits for the first, and takes over
		_, err := b.PackageByVnfd(ctx, mine, vnfd1, false)
		others <- err
	}()
	a.Close()
	if err := <-answered; err == nil {
		t.Error("the package came though nobody sent it")
	}
	_, err := a.PackageByVnfd(ctx, mine, vnfd1, false)
	refused(t, err, lcm.KindUnavailable, "cannot be fetched from the NFVO now")
	close(gate)
	if err := <-others; err != nil {
		t.Error(err)
	}
	if d := o.Downloads(pkg1); d != 2 {
		t.Errorf("%d downloads", d)
	}
}

func TestPackagesAddresses(t *testing.T) {
	_, err := nfvo.NewPackages(nfvo.PackagesConfig{BaseURL: "nfvo"}, nil, storetest.Log())
	refused(t, err, lcm.KindInvalid, "the NFVO's address")
	_, err = nfvo.NewPackages(nfvo.PackagesConfig{BaseURL: "http://nfvo", Login: outbound.Config{TLS: outbound.TLS{CAFile: "/nowhere"}}}, nil, storetest.Log())
	if err == nil {
		t.Error("a CA file that is not there passes")
	}
}
