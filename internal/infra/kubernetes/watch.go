package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// watchKey is what one watch is of: a kind, in a namespace or ("") in the whole cluster.
type watchKey struct {
	schema.GroupVersionResource
	namespace string
}

// watch holds the objects of one kind in one namespace as they were last reported.
type watch struct {
	key  watchKey
	stop context.CancelFunc
	idle *time.Timer

	mu      sync.RWMutex
	objects map[string]map[string]*unstructured.Unstructured // by namespace, "" for those of the cluster, and name
	gone    map[types.UID]bool                               // that were reported and are not there any more, marked as a VNF's
	read    map[types.NamespacedName]reading                 // what was read since the watch has not reported it yet
	synced  chan struct{}                                    // closed once the objects are known
	denied  time.Time                                        // when we were told that we may not
	over    chan struct{}                                    // closed then
}

// reading is an object as it was read, and when.
type reading struct {
	object *unstructured.Unstructured
	at     time.Time
}

// readAgain is how long what was read stands for what a watch has yet to report: an API server that is slow to report is not to
// be asked at every look besides.
const readAgain = 5 * time.Second

// The number of watches of one VIM is bounded. So many namespaces have one of their own for a kind; those that come after share
// one of the whole cluster, where the account may have that. Of pods more do, since a watch of the cluster's reports those of
// others too: they are not marked. Altogether there are no more than mostWatches; what comes after is read one by one.
const (
	mostOwn     = 8
	mostOwnPods = 64
	mostWatches = 512
)

// mostGone bounds how many objects a watch remembers that are gone.
const mostGone = 10000

// watching returns the watch that reports the objects of a kind in a namespace: the namespace's own, or the cluster's.
func (c *cluster) watching(ctx context.Context, gvr schema.GroupVersionResource, ns string) *watch {
	own, wide := watchKey{gvr, ns}, watchKey{gvr, ""}
	if ns == "" {
		return c.watch(own)
	}
	most := mostOwn
	if gvr == pods.gvr() {
		most = mostOwnPods
	}
	c.mu.Lock()
	shared, refused := false, false
	if w, ok := c.watches[wide]; ok {
		shared = w.known()
		refused = w.refused() && !w.expired()
	}
	_, has := c.watches[own]
	n := 0
	for key := range c.watches {
		if key.GroupVersionResource == gvr && key.namespace != "" {
			n++
		}
	}
	if !shared && (refused || has || n < most) {
		defer c.mu.Unlock() // counted and begun at once
		return c.begun(own)
	}
	c.mu.Unlock()
	if shared || c.mayWatchAll(ctx, gvr) {
		return c.watch(wide)
	}
	return c.watch(own)
}

// mayWatchAll tells whether the account may watch a kind in all namespaces.
func (c *cluster) mayWatchAll(ctx context.Context, gvr schema.GroupVersionResource) bool {
	c.mu.Lock()
	at, ok := c.narrow[gvr]
	c.mu.Unlock()
	if ok && time.Since(at) < deniedFor {
		return false
	}
	for _, verb := range []string{"list", "watch"} {
		may, err := c.may(ctx, right{verb: verb, group: gvr.Group, resource: gvr.Resource})
		if err != nil { // no answer is not a no
			return false
		}
		if !may {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.narrow[gvr] = time.Now()
			return false
		}
	}
	return true
}

// deniedFor is how long nobody asks again to watch what may not be watched.
const deniedFor = time.Minute

// firstLook is how long a look waits for a watch that has only just begun.
const firstLook = 2 * time.Second

// watch returns the watch of a kind, which it begins when there is none. Each use keeps it alive.
func (c *cluster) watch(key watchKey) *watch {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun(key)
}

// begun is watch for those who hold c.mu.
func (c *cluster) begun(key watchKey) *watch {
	if w, ok := c.watches[key]; ok && !w.expired() {
		w.idle.Reset(c.driver.cfg.WatchIdle)
		return w
	}
	ctx, cancel := context.WithCancel(context.Background()) // it outlives the look that begins it; close ends it
	w := &watch{
		key: key, stop: cancel, objects: map[string]map[string]*unstructured.Unstructured{}, gone: map[types.UID]bool{}, read: map[types.NamespacedName]reading{},
		synced: make(chan struct{}), over: make(chan struct{}),
	}
	if c.closed || len(c.watches) >= mostWatches { // what still looks reads for itself
		cancel()
		w.denied = time.Now()
		return w
	}
	w.idle = time.AfterFunc(c.driver.cfg.WatchIdle, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.watches[key] == w {
			delete(c.watches, key)
		}
		cancel()
	})
	c.watches[key] = w
	quiet := klog.Logger{}
	reflector := cache.NewReflectorWithOptions(w.source(c), &unstructured.Unstructured{}, w, cache.ReflectorOptions{
		Logger: &quiet, Name: key.String(), TypeDescription: key.String(),
	})
	c.running.Go(func() {
		reflector.RunWithContext(klog.NewContext(ctx, quiet))
	})
	return w
}

// source lists and watches for the reflector, and takes note of being denied.
func (w *watch) source(c *cluster) cache.ListerWatcher {
	r := c.objects.Resource(w.key.GroupVersionResource).Namespace(w.key.namespace)
	selector := instanceLabel // what is no VNF's is not looked at; pods are not marked, though
	if w.key.GroupVersionResource == pods.gvr() {
		selector = ""
	}
	deny := func(err error) {
		if isForbidden(err) || isGone(err) {
			w.mu.Lock()
			if w.denied.IsZero() {
				w.denied = time.Now()
				close(w.over)
			}
			w.mu.Unlock()
			w.stop()
		}
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			ctx, cancel := c.call(ctx)
			defer cancel()
			options.LabelSelector = selector
			list, err := r.List(ctx, options)
			deny(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			options.LabelSelector = selector
			events, err := r.Watch(ctx, options)
			deny(err)
			return events, err
		},
	}
}

// refused tells whether the watch was denied.
func (w *watch) refused() bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return !w.denied.IsZero()
}

// expired tells whether a watch that was denied may be tried again.
func (w *watch) expired() bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return !w.denied.IsZero() && time.Since(w.denied) > deniedFor
}

// ready waits until the objects are known. It tells whether they are; if not, they are to be read one by one.
func (w *watch) ready(ctx context.Context) bool {
	if w.refused() {
		return false
	}
	select {
	case <-w.synced:
		return true
	default:
	}
	timer := time.NewTimer(firstLook)
	defer timer.Stop()
	select {
	case <-w.synced:
		return true
	case <-w.over:
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// known tells whether the objects are known.
func (w *watch) known() bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	select {
	case <-w.synced:
		return w.denied.IsZero()
	default:
		return false
	}
}

// get returns an object, nil when it has not been reported. It is not to be changed.
func (w *watch) get(ns, name string) *unstructured.Unstructured {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.objects[ns][name]
}

// lately returns an object as it was read a short while ago, if it is no older than a version; else nil. It is not to be changed.
func (w *watch) lately(name types.NamespacedName, version string) *unstructured.Unstructured {
	w.mu.RLock()
	defer w.mu.RUnlock()
	r, ok := w.read[name]
	if !ok || time.Since(r.at) > readAgain || older(r.object.GetResourceVersion(), version) {
		return nil
	}
	return r.object
}

// keep lays down an object that has been read, until the watch reports it.
func (w *watch) keep(name types.NamespacedName, u *unstructured.Unstructured) {
	slim(u)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone[u.GetUID()] {
		return
	}
	maps.DeleteFunc(w.read, func(_ types.NamespacedName, r reading) bool { return time.Since(r.at) > readAgain })
	w.read[name] = reading{u, time.Now()}
}

// reported drops what was read of an object that the watch has reported, unless that is from before; w.mu is held.
func (w *watch) reported(u *unstructured.Unstructured) {
	name := types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}
	if r, ok := w.read[name]; ok && !older(u.GetResourceVersion(), r.object.GetResourceVersion()) {
		delete(w.read, name)
	}
}

// left tells whether an object has been reported that is not there any more, or is not marked as a VNF's.
func (w *watch) left(uid string) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return uid != "" && w.gone[types.UID(uid)]
}

// list returns all objects of a namespace, in no order. They are not to be changed.
func (w *watch) list(ns string) []*unstructured.Unstructured {
	w.mu.RLock()
	defer w.mu.RUnlock()
	out := make([]*unstructured.Unstructured, 0, len(w.objects[ns]))
	for _, u := range w.objects[ns] {
		out = append(out, u)
	}
	return out
}

// Add implements cache.ReflectorStore.
func (w *watch) Add(obj any) error { return w.Update(obj) }

// Update implements cache.ReflectorStore.
func (w *watch) Update(obj any) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("a watch of %s has reported a %T", w.key, obj)
	}
	slim(u)
	w.mu.Lock()
	defer w.mu.Unlock()
	put(w.objects, u)
	w.reported(u)
	return nil
}

// Delete implements cache.ReflectorStore.
func (w *watch) Delete(obj any) error {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.objects[u.GetNamespace()], u.GetName())
		if len(w.objects[u.GetNamespace()]) == 0 {
			delete(w.objects, u.GetNamespace())
		}
		w.bury(u)
		w.reported(u)
	}
	return nil
}

// bury takes note that an object is not there any more; w.mu is held.
func (w *watch) bury(u *unstructured.Unstructured) {
	if len(w.gone) >= mostGone {
		w.gone = map[types.UID]bool{}
	}
	w.gone[u.GetUID()] = true
}

// put lays an object down where it is looked for.
func put(objects map[string]map[string]*unstructured.Unstructured, u *unstructured.Unstructured) {
	in := objects[u.GetNamespace()]
	if in == nil {
		in = map[string]*unstructured.Unstructured{}
		objects[u.GetNamespace()] = in
	}
	in[u.GetName()] = u
}

// Replace implements cache.ReflectorStore.
func (w *watch) Replace(list []any, _ string) error {
	objects := map[string]map[string]*unstructured.Unstructured{}
	for _, obj := range list {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			slim(u)
			put(objects, u)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for ns, in := range w.objects {
		for name, u := range in {
			if now := objects[ns][name]; now == nil || now.GetUID() != u.GetUID() {
				w.bury(u)
			}
		}
	}
	w.objects = objects
	clear(w.read)
	select {
	case <-w.synced:
	default:
		close(w.synced)
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (w *watch) Resync() error { return nil }

// slim drops what nobody looks at.
func slim(u *unstructured.Unstructured) {
	u.SetManagedFields(nil)
	switch u.GetKind() {
	case "Secret", "ConfigMap":
		for _, field := range []string{"data", "stringData", "binaryData"} {
			delete(u.Object, field)
		}
	case "Pod":
		unstructured.RemoveNestedField(u.Object, "spec", "containers")
		unstructured.RemoveNestedField(u.Object, "spec", "initContainers")
		unstructured.RemoveNestedField(u.Object, "spec", "volumes")
	}
}

// older tells whether a resource version is from before another: they grow, and are decimal numbers in every API server whose
// word there is any use of comparing.
func older(version, than string) bool {
	a, errA := strconv.ParseUint(version, 10, 64)
	b, errB := strconv.ParseUint(than, 10, 64)
	return errA == nil && errB == nil && a < b
}

// look returns an object as a watch has last reported it, or as it is where it may not be watched; nil when it is not there.
// What the watch has reported is no older than the version that we have written.
func (c *cluster) look(ctx context.Context, o *object, ns, written string) (*unstructured.Unstructured, error) {
	w := c.watching(ctx, o.gvr(), o.in(ns))
	if w.ready(ctx) {
		if u := w.get(o.in(ns), o.Name); u != nil && (written == "" || !older(u.GetResourceVersion(), written)) {
			return u, nil
		}
	}
	name := types.NamespacedName{Namespace: o.in(ns), Name: o.Name} // not there, or not reported yet
	if written != "" {
		if u := w.lately(name, written); u != nil {
			return u, nil
		}
	}
	u, err := c.get(ctx, o, ns)
	if u != nil && !w.refused() {
		w.keep(name, u)
	}
	return u, err
}

// pods is how pods are reached.
var pods = object{Version: "v1", Kind: "Pod", Resource: "pods", Namespaced: true}

// podsOf returns all pods of a namespace.
func (c *cluster) podsOf(ctx context.Context, ns string) ([]*unstructured.Unstructured, error) {
	if w := c.watching(ctx, pods.gvr(), ns); w.ready(ctx) {
		return w.list(ns), nil
	}
	ctx, cancel := c.call(ctx)
	defer cancel()
	list, err := c.resource(&pods, ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, c.wrap("list pods in namespace "+ns, err)
	}
	out := make([]*unstructured.Unstructured, len(list.Items))
	for n := range list.Items {
		out[n] = &list.Items[n]
	}
	return out, nil
}
