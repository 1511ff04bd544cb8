package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// cluster is a client of one VIM, as it was registered in one version.
type cluster struct {
	driver  *Driver
	vim     string // its id
	name    string // of the VIM, for messages
	version int64
	used    time.Time // last; the driver's mu guards it
	http    *http.Client
	objects dynamic.Interface
	raw     rest.Interface

	asking singleflight.Group

	mu           sync.Mutex
	refusedSince time.Time
	deniedSince  time.Time                                 // since when it is not even told whether the API server is ready
	readyAt      time.Time                                 // when the API server was seen to be ready last
	groups       map[string]group                          // by group version
	allowed      map[string]time.Time                      // what we may do, by when that was found out
	rules        map[string]known                          // what we may do, by namespace
	narrow       map[schema.GroupVersionResource]time.Time // what we may not watch everywhere, by when that was found out
	owners       map[types.UID]ownership
	hidden       map[schema.GroupVersionKind]time.Time // kinds of owners that we may not read, by when we were told so
	binding      map[string]binding                    // by StorageClass
	heard        map[types.UID]heard                   // by claim
	watches      map[watchKey]*watch
	closed       bool
	running      sync.WaitGroup
}

// group is what an API server serves of a group version.
type group struct {
	resources []metav1.APIResource
	at        time.Time
}

// connect returns the client of the operation's VIM; that of an earlier version of the VIM is closed, and so are those that
// nobody has used for a while.
func (d *Driver) connect(t *lcm.VimTarget) (*cluster, error) {
	d.mu.Lock()
	now := time.Now()
	var over []*cluster
	c, ok := d.clusters[t.ID]
	if !ok || c.version < t.Version {
		fresh, err := d.client(t)
		if err != nil {
			d.mu.Unlock()
			return nil, err
		}
		if ok {
			over = append(over, c)
		}
		c = fresh
		d.clusters[t.ID] = c
	}
	c.used = now
	over = append(over, d.idle(now)...)
	d.mu.Unlock()
	for _, o := range over {
		o.close()
	}
	return c, nil
}

// client makes a client without calling anybody.
func (d *Driver) client(t *lcm.VimTarget) (*cluster, error) {
	c := &cluster{
		driver: d, vim: t.ID, name: cmp.Or(t.Name, t.ID), version: t.Version,
		groups: map[string]group{}, allowed: map[string]time.Time{}, rules: map[string]known{}, narrow: map[schema.GroupVersionResource]time.Time{},
		owners: map[types.UID]ownership{}, hidden: map[schema.GroupVersionKind]time.Time{}, binding: map[string]binding{}, heard: map[types.UID]heard{},
		watches: map[watchKey]*watch{},
	}
	rt, err := d.transport(t)
	if err != nil {
		return nil, err
	}
	c.http = &http.Client{Transport: &noting{next: d.probed(rt), cluster: c}, CheckRedirect: noRedirects}
	config := &rest.Config{Host: strings.TrimRight(t.AuthURL, "/"), QPS: -1, WarningHandler: rest.NoWarnings{}, UserAgent: fieldManager}
	bad := func(err error) error { return lcm.Errorf(lcm.KindTerminal, "VIM %s: auth_url: %w", c.name, err) }
	if c.objects, err = dynamic.NewForConfigAndClient(config, c.http); err != nil {
		return nil, bad(err)
	}
	kinds, err := discovery.NewDiscoveryClientForConfigAndClient(config, c.http)
	if err != nil {
		return nil, bad(err)
	}
	c.raw = kinds.RESTClient()
	return c, nil
}

// noting takes note of answers, and of refused credentials.
type noting struct {
	next    http.RoundTripper
	cluster *cluster
}

// RoundTrip implements http.RoundTripper.
func (n *noting) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := n.next.RoundTrip(req)
	if err == nil {
		n.cluster.driver.cfg.Crew.Answered(n.cluster.vim)
		n.cluster.note(resp.StatusCode == http.StatusUnauthorized)
	}
	return resp, err
}

// CloseIdleConnections lets the HTTP client's method of that name reach the connections.
func (n *noting) CloseIdleConnections() { closeIdle(n.next) }

// close ends the watches and closes connections that are not in use.
func (c *cluster) close() {
	c.mu.Lock()
	c.closed = true
	for _, w := range c.watches {
		w.idle.Stop()
		w.stop()
	}
	c.watches = map[watchKey]*watch{}
	c.mu.Unlock()
	c.running.Wait()
	c.http.CloseIdleConnections()
}

// call bounds one call.
func (c *cluster) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.driver.cfg.CallTimeout)
}

// once has several that ask the same at the same time ask once. What is asked goes on when who has begun it is not there any more.
func once[T any](ctx context.Context, c *cluster, what string, ask func(ctx context.Context) (T, error)) (T, error) {
	answers := c.asking.DoChan(what, func() (any, error) { return ask(context.WithoutCancel(ctx)) })
	var none T
	select {
	case a := <-answers:
		if a.Err != nil {
			return none, a.Err
		}
		return a.Val.(T), nil //nolint:forcetypeassert // ask's own
	case <-ctx.Done():
		return none, fmt.Errorf("wait for an answer of VIM %s: %w", c.name, ctx.Err())
	}
}

// errNoKind is in the chain of the error that a kind is not served.
var errNoKind = errors.New("the cluster has no such kind")

// rediscover is the least time between two looks at a group version that lacked what was looked for.
const rediscover = time.Second

// kindsFor is how long nobody asks again for what the cluster serves of a group version: somebody may define a kind anew.
const kindsFor = 5 * time.Minute

// kind is what the API server says of a kind.
type kind struct {
	resource   string
	namespaced bool
	once       bool // it can be created and not read: there is nothing afterwards
	scale      bool
	status     bool
}

// kindOf finds a kind. errNoKind, terminal: the cluster does not serve it.
func (c *cluster) kindOf(ctx context.Context, gvk schema.GroupVersionKind) (kind, error) {
	gv := gvk.GroupVersion().String()
	c.mu.Lock()
	known, ok := c.groups[gv]
	c.mu.Unlock()
	if ok {
		if k, ok := kindIn(known.resources, gvk.Kind); ok && time.Since(known.at) < kindsFor {
			return k, nil
		}
		if time.Since(known.at) < rediscover {
			return kind{}, c.noKind(gvk)
		}
	}
	found, err := once(ctx, c, "served:"+gv, func(ctx context.Context) (group, error) {
		found, err := c.served(ctx, gvk.GroupVersion())
		if err == nil {
			c.mu.Lock()
			c.groups[gv] = found
			c.mu.Unlock()
		}
		return found, err
	})
	if err != nil {
		return kind{}, err
	}
	if k, ok := kindIn(found.resources, gvk.Kind); ok {
		return k, nil
	}
	return kind{}, c.noKind(gvk)
}

// served asks what the cluster serves of a group version; nothing, when it does not know it.
func (c *cluster) served(ctx context.Context, gv schema.GroupVersion) (group, error) {
	ctx, cancel := c.call(ctx)
	defer cancel()
	parts := []string{"/apis", gv.Group, gv.Version}
	if gv.Group == "" {
		parts = []string{"/api", gv.Version}
	}
	out := group{at: time.Now()}
	raw, err := c.raw.Get().AbsPath(parts...).SetHeader("Accept", "application/json").Do(ctx).Raw()
	if statusOf(err) == http.StatusNotFound {
		return out, nil
	}
	var list metav1.APIResourceList
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	if err != nil {
		return group{}, c.wrap("find out about "+gv.String(), err)
	}
	out.resources = list.APIResources
	return out, nil
}

func (c *cluster) noKind(gvk schema.GroupVersionKind) error {
	return &lcm.Error{
		Kind: lcm.KindTerminal, Err: errNoKind,
		Detail: fmt.Sprintf("VIM %s knows no kind %s of apiVersion %s", c.name, gvk.Kind, gvk.GroupVersion()),
	}
}

func kindIn(resources []metav1.APIResource, name string) (kind, bool) {
	n := slices.IndexFunc(resources, func(r metav1.APIResource) bool { return r.Kind == name && !strings.Contains(r.Name, "/") })
	if n < 0 {
		return kind{}, false
	}
	r := resources[n]
	sub := func(name string) bool {
		return slices.ContainsFunc(resources, func(s metav1.APIResource) bool { return s.Name == r.Name+"/"+name })
	}
	return kind{
		resource: r.Name, namespaced: r.Namespaced, scale: sub("scale"), status: sub("status"),
		once: !slices.Contains(r.Verbs, "get"),
	}, true
}

// resource is how objects of o's kind are reached.
func (c *cluster) resource(o *object, ns string) dynamic.ResourceInterface {
	r := c.objects.Resource(o.gvr())
	if o.Namespaced {
		return r.Namespace(ns)
	}
	return r
}

// get reads an object; nil when it is not there.
func (c *cluster) get(ctx context.Context, o *object, ns string) (*unstructured.Unstructured, error) {
	ctx, cancel := c.call(ctx)
	defer cancel()
	u, err := c.resource(o, ns).Get(ctx, o.Name, metav1.GetOptions{})
	if isGone(err) {
		return nil, nil //nolint:nilnil // that it is not there is no error
	}
	if err != nil {
		return nil, c.wrap("read "+o.title(ns), err)
	}
	return u, nil
}

// apply brings an object to what it is to be. What is there (live), and ours, is brought to it whoever else has had a hand in
// it; what is not there is made, and is not when somebody else has done so meanwhile: a conflict.
func (c *cluster) apply(ctx context.Context, o *object, ns, instanceID string, u, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	ctx, cancel := c.call(ctx)
	defer cancel()
	if live != nil {
		u.SetUID(live.GetUID())
	}
	return c.resource(o, ns).Apply(ctx, o.Name, u, metav1.ApplyOptions{FieldManager: managerOf(instanceID), Force: live != nil})
}

// post creates what is only posted.
func (c *cluster) post(ctx context.Context, o *object, ns string, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	ctx, cancel := c.call(ctx)
	defer cancel()
	return c.resource(o, ns).Create(ctx, u, metav1.CreateOptions{FieldManager: fieldManager})
}

// deletion is how an object is deleted.
type deletion struct {
	uid     string // that it must have, "" for any
	version string // and its resource version, "" for any
	owner   bool   // its dependents go first
	grace   *int64
}

// delete asks for an object to be deleted. It tells whether the object is gone already, or not the one that was meant.
func (c *cluster) delete(ctx context.Context, o *object, ns string, del deletion) (gone bool, err error) {
	ctx, cancel := c.call(ctx)
	defer cancel()
	policy := metav1.DeletePropagationBackground
	if del.owner {
		policy = metav1.DeletePropagationForeground
	}
	options := metav1.DeleteOptions{
		TypeMeta:          metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: "v1"},
		PropagationPolicy: &policy, GracePeriodSeconds: del.grace,
	}
	if del.uid != "" {
		uid := types.UID(del.uid)
		options.Preconditions = &metav1.Preconditions{UID: &uid}
		if del.version != "" {
			options.Preconditions.ResourceVersion = &del.version
		}
	}
	body, err := json.Marshal(options)
	if err != nil {
		return false, fmt.Errorf("delete %s: %w", o.title(ns), err)
	}
	result := c.raw.Delete().AbsPath(o.path(ns)...).SetHeader("Content-Type", "application/json").Body(body).Do(ctx)
	answer, _ := result.Raw()
	err = result.Error() // with what the API server says of it
	switch {
	case isGone(err):
		return true, nil
	case statusOf(err) == http.StatusConflict && del.uid != "": // another one, or just being changed
		if u, e := c.get(ctx, o, ns); e == nil && (u == nil || string(u.GetUID()) != del.uid) {
			return true, nil
		}
		return false, c.wrap("delete "+o.title(ns), err)
	case err != nil:
		return false, c.wrap("delete "+o.title(ns), err)
	}
	var said struct {
		Kind     string `json:"kind"`
		Metadata struct {
			DeletionTimestamp string `json:"deletionTimestamp"`
		} `json:"metadata"`
	}
	// What goes at once is answered with, or with a Status; what does not has a time to go.
	return json.Unmarshal(answer, &said) == nil && (said.Kind == "Status" || said.Metadata.DeletionTimestamp == ""), nil
}

// path returns the parts of an object's path.
func (o *object) path(ns string) []string {
	parts := []string{"/apis", o.Group, o.Version}
	if o.Group == "" {
		parts = []string{"/api", o.Version}
	}
	if o.Namespaced {
		parts = append(parts, "namespaces", ns)
	}
	return append(parts, o.Resource, o.Name)
}

// ours tells whether an object carries the instance's label.
func ours(u *unstructured.Unstructured, instanceID string) bool {
	return u.GetLabels()[instanceLabel] == instanceID
}

// forget has the kinds of a group version be found out anew.
func (c *cluster) forget(gvk schema.GroupVersionKind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.groups, gvk.GroupVersion().String())
}
