package lab

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

var (
	create metav1.CreateOptions
	get    metav1.GetOptions
	remove metav1.DeleteOptions
	patch  metav1.PatchOptions
	listed metav1.ListOptions
)

// pods is a template of pods with a label, annotations (name, value, …) and one container.
func pods(app string, annotations ...string) corev1.PodTemplateSpec {
	notes := map[string]string{}
	for i := 0; i+1 < len(annotations); i += 2 {
		notes[annotations[i]] = annotations[i+1]
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}, Annotations: notes},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example/main:1"}}},
	}
}

func selects(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}

func deploy(t *testing.T, c kubernetes.Interface, namespace, name string, replicas int32) {
	t.Helper()
	_, err := c.AppsV1().Deployments(namespace).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: selects(name), Template: pods(name)},
	}, create)
	if err != nil {
		t.Fatal(err)
	}
}

func scale(t *testing.T, c kubernetes.Interface, namespace, name string, replicas int32) {
	t.Helper()
	body := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	_, err := c.AppsV1().Deployments(namespace).Patch(t.Context(), name, types.MergePatchType, body, patch, "scale")
	if err != nil {
		t.Fatal(err)
	}
}

// awaitDeployed waits until a Deployment has its replicas, all available, and no pod besides.
func awaitDeployed(t *testing.T, c kubernetes.Interface, namespace, name string, replicas int) {
	t.Helper()
	ctx := within(t)
	err := await(ctx, fmt.Sprintf("%s to have %d replicas", name, replicas), func() (bool, error) {
		d, err := c.AppsV1().Deployments(namespace).Get(ctx, name, get)
		if err != nil {
			return false, err
		}
		all, err := c.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
		return int(d.Status.AvailableReplicas) == replicas && d.Status.ObservedGeneration == d.Generation &&
			len(all.Items) == replicas, err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestDeploymentIsScaled(t *testing.T) {
	t.Parallel()
	p := Start(t)
	ns := p.Namespace(t, "deployment")
	deploy(t, p.Client, ns, "web", 3)
	awaitDeployed(t, p.Client, ns, "web", 3)
	scale(t, p.Client, ns, "web", 5)
	awaitDeployed(t, p.Client, ns, "web", 5)
	scale(t, p.Client, ns, "web", 2)
	awaitDeployed(t, p.Client, ns, "web", 2)

	before, err := p.Client.CoreV1().Pods(ns).List(t.Context(), listed)
	if err != nil {
		t.Fatal(err)
	}
	lost := before.Items[0]
	if lost.Status.PodIP == "" || lost.Spec.NodeName == "" {
		t.Errorf("%s has address %q on node %q", lost.Name, lost.Status.PodIP, lost.Spec.NodeName)
	}
	if err := p.Client.CoreV1().Pods(ns).Delete(t.Context(), lost.Name, remove); err != nil {
		t.Fatal(err)
	}
	err = await(within(t), lost.Name+" to be gone", func() (bool, error) {
		_, err := p.Client.CoreV1().Pods(ns).Get(t.Context(), lost.Name, get)
		return apierrors.IsNotFound(err), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	awaitDeployed(t, p.Client, ns, "web", 2)
}

func TestStatefulSetHasItsClaimsBound(t *testing.T) {
	t.Parallel()
	p, replicas := Start(t), int32(2)
	ns := p.Namespace(t, "statefulset")
	_, err := p.Client.AppsV1().StatefulSets(ns).Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, ServiceName: "db", Selector: selects("db"), Template: pods("db"),
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: claim(nil, "")}},
		},
	}, create)
	if err != nil {
		t.Fatal(err)
	}
	ctx := within(t)
	err = await(ctx, "db to be ready", func() (bool, error) {
		s, err := p.Client.AppsV1().StatefulSets(ns).Get(ctx, "db", get)
		return err == nil && s.Status.ReadyReplicas == replicas, err
	})
	if err != nil {
		t.Fatal(err)
	}
	claims, err := p.Client.CoreV1().PersistentVolumeClaims(ns).List(ctx, listed)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]corev1.PersistentVolumeClaimPhase{}
	for _, c := range claims.Items {
		got[c.Name] = c.Status.Phase
	}
	want := map[string]corev1.PersistentVolumeClaimPhase{"data-db-0": corev1.ClaimBound, "data-db-1": corev1.ClaimBound}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// claim asks for a little storage, of a class (nil: the default one) or of a certain volume.
func claim(class *string, volume string) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: class, VolumeName: volume,
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceStorage: resource.MustParse("1Mi"),
		}},
	}
}

func TestVolumeOnNFSIsBound(t *testing.T) {
	t.Parallel()
	p, none := Start(t), ""
	ns := p.Namespace(t, "nfs")
	volumes := p.Client.CoreV1().PersistentVolumes()
	_, err := volumes.Create(t.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				NFS: &corev1.NFSVolumeSource{Server: "192.0.2.1", Path: "/volume"},
			},
		},
	}, create)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = volumes.Delete(context.Background(), ns, remove) })
	claims := p.Client.CoreV1().PersistentVolumeClaims(ns)
	_, err = claims.Create(t.Context(),
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "own"}, Spec: claim(&none, ns)}, create)
	if err != nil {
		t.Fatal(err)
	}
	ctx := within(t)
	err = await(ctx, "the claim to be bound", func() (bool, error) {
		c, err := claims.Get(ctx, "own", get)
		return err == nil && c.Status.Phase == corev1.ClaimBound, err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestJobs(t *testing.T) {
	t.Parallel()
	p := Start(t)
	ns := p.Namespace(t, "job")
	for name, c := range map[string]struct {
		annotations []string
		ends        batchv1.JobConditionType
	}{
		"good": {nil, batchv1.JobComplete},
		"slow": {[]string{EndsAfter, "300ms"}, batchv1.JobComplete},
		"bad":  {[]string{ExitCode, "3"}, batchv1.JobFailed},
	} {
		retries, template := int32(0), pods(name, c.annotations...)
		template.Spec.RestartPolicy = corev1.RestartPolicyNever
		_, err := p.Client.BatchV1().Jobs(ns).Create(t.Context(), &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{Template: template, BackoffLimit: &retries},
		}, create)
		if err != nil {
			t.Fatal(err)
		}
		ctx := within(t)
		err = await(ctx, fmt.Sprintf("%s to be %s", name, c.ends), func() (bool, error) {
			j, err := p.Client.BatchV1().Jobs(ns).Get(ctx, name, get)
			return err == nil && slices.ContainsFunc(j.Status.Conditions, func(have batchv1.JobCondition) bool {
				return have.Type == c.ends && have.Status == corev1.ConditionTrue
			}), err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// seen is what a pod looks like from outside: its phase, whether it is ready, and what its containers wait for.
type seen struct {
	Phase  corev1.PodPhase
	Ready  bool
	Reason string
}

func look(p *corev1.Pod) seen {
	s := seen{Phase: p.Status.Phase}
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Waiting != nil {
			s.Reason = c.State.Waiting.Reason
		}
	}
	for _, c := range p.Status.Conditions {
		s.Ready = s.Ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}
	return s
}

func TestPodsBehaveAsTheyAreTold(t *testing.T) {
	t.Parallel()
	p := Start(t)
	ns := p.Namespace(t, "behaviour")
	ready := seen{Phase: corev1.PodRunning, Ready: true}
	for name, c := range map[string]struct {
		annotation, value string
		change            func(*corev1.Container)
		is                seen
		event             string
	}{
		"plain":           {is: ready, event: "Started"},
		"slow":            {annotation: ReadyAfter, value: "300ms", is: ready},
		"no-image":        {annotation: Pull, value: "true", is: seen{corev1.PodPending, false, "ImagePullBackOff"}, event: "Failed"},
		"no-image-reason": {annotation: Pull, value: "ErrImagePull", is: seen{corev1.PodPending, false, "ErrImagePull"}},
		"crash":           {annotation: Crash, value: "true", is: seen{corev1.PodRunning, false, "CrashLoopBackOff"}, event: "BackOff"},
		"crash-reason":    {annotation: Crash, value: "RunContainerError", is: seen{corev1.PodRunning, false, "RunContainerError"}},
		"invalid-registry": {
			change: func(c *corev1.Container) { c.Image = "registry.invalid:5000/a/b:1" },
			is:     seen{corev1.PodPending, false, "ImagePullBackOff"},
		},
		"valid-registry": {change: func(c *corev1.Container) { c.Image = "registry.example/x.invalid/b:1" }, is: ready},
		"false": {
			change: func(c *corev1.Container) { c.Command = []string{"/bin/false"} },
			is:     seen{corev1.PodRunning, false, "CrashLoopBackOff"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			template := pods(name, c.annotation, c.value)
			if c.annotation == "" {
				template = pods(name)
			}
			if c.change != nil {
				c.change(&template.Spec.Containers[0])
			}
			template.Name = name
			own := p.Client.CoreV1().Pods(ns)
			_, err := own.Create(t.Context(), &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}, create)
			if err != nil {
				t.Fatal(err)
			}
			awaitSeen(t, p, ns, name, c.is)
			if c.event != "" {
				awaitEvent(t, p, ns, name, c.event)
			}
			if c.annotation == "" || c.is.Ready {
				return
			}
			letGo := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}}}`, c.annotation)
			if _, err := own.Patch(t.Context(), name, types.MergePatchType, letGo, patch); err != nil {
				t.Fatal(err)
			}
			awaitSeen(t, p, ns, name, ready)
		})
	}
}

func awaitSeen(t *testing.T, p *Plane, namespace, name string, want seen) {
	t.Helper()
	ctx := within(t)
	var last seen
	err := await(ctx, fmt.Sprintf("%s to be %+v", name, want), func() (bool, error) {
		pod, err := p.Client.CoreV1().Pods(namespace).Get(ctx, name, get)
		if err != nil {
			return false, err
		}
		last = look(pod)
		return last == want, nil
	})
	if err != nil {
		t.Fatalf("%v; it is %+v", err, last)
	}
}

func awaitEvent(t *testing.T, p *Plane, namespace, name, reason string) {
	t.Helper()
	ctx := within(t)
	err := await(ctx, "an event "+reason+" of "+name, func() (bool, error) {
		events, err := p.Client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
		return err == nil && slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.Reason == reason }), err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestCustomResource(t *testing.T) {
	t.Parallel()
	p := Start(t)
	ns := p.Namespace(t, "custom")
	objects, err := dynamic.NewForConfig(p.Config())
	if err != nil {
		t.Fatal(err)
	}
	group := ns + ".example.com"
	crds := objects.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	_, err = crds.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "things." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced", "names": map[string]any{"plural": "things", "singular": "thing", "kind": "Thing"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "x-kubernetes-preserve-unknown-fields": true,
				}},
			}},
		},
	}}, create)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = crds.Delete(context.Background(), "things."+group, remove) })
	things := objects.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "things"}).Namespace(ns)
	ctx := within(t)
	err = await(ctx, "a Thing to be taken", func() (bool, error) {
		_, err := things.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": group + "/v1", "kind": "Thing", "metadata": map[string]any{"name": "one"}, "spec": map[string]any{"size": int64(3)},
		}}, create)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestNamespaceIsRemovedWithItsPods(t *testing.T) {
	t.Parallel()
	p := Start(t)
	ctx := within(t)
	ns, err := p.CreateNamespace(ctx, "removed")
	if err != nil {
		t.Fatal(err)
	}
	deploy(t, p.Client, ns, "web", 2)
	awaitDeployed(t, p.Client, ns, "web", 2)
	if err := p.RemoveNamespace(ctx, ns); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Client.CoreV1().Namespaces().Get(ctx, ns, get); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestAccountsMayWhatTheyAreGranted(t *testing.T) {
	t.Parallel()
	p := Start(t)
	ctx := within(t)
	own, foreign := p.Namespace(t, "own"), p.Namespace(t, "foreign")
	admin, err := p.Administrator(ctx, own, "administrator")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Dismiss(context.Background(), admin) })
	tenant, err := p.Tenant(ctx, own, "tenant")
	if err != nil {
		t.Fatal(err)
	}
	reader, err := p.Tenant(ctx, own, "reader", rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"},
	})
	if err != nil {
		t.Fatal(err)
	}
	token := func(a Account) Credential {
		t.Helper()
		s, err := p.Token(ctx, a)
		if err != nil {
			t.Fatal(err)
		}
		return Credential{Token: s}
	}
	lasting, _, err := p.LastingToken(ctx, tenant)
	if err != nil {
		t.Fatal(err)
	}
	short, err := p.ShortToken(tenant, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := p.Certificate("stranger", "guests")
	if err != nil {
		t.Fatal(err)
	}
	operator, err := p.Certificate("operator", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	const may, mayNot, unknown = metav1.StatusSuccess, metav1.StatusReasonForbidden, metav1.StatusReasonUnauthorized
	for name, c := range map[string]struct {
		as                             Credential
		ownPods, foreignPods, allNodes any
	}{
		"administrator":                {token(admin), may, may, may},
		"tenant":                       {token(tenant), may, mayNot, mayNot},
		"tenant, a lasting token":      {Credential{Token: lasting}, may, mayNot, mayNot},
		"tenant, a token of our own":   {Credential{Token: short}, may, mayNot, mayNot},
		"reader of ConfigMaps":         {token(reader), mayNot, mayNot, mayNot},
		"stranger with a certificate":  {stranger, mayNot, mayNot, mayNot},
		"operator with a certificate":  {operator, may, may, may},
		"nobody":                       {Credential{}, mayNot, mayNot, mayNot},
		"somebody with another's word": {Credential{Token: "made.up.token"}, unknown, unknown, unknown},
	} {
		client, err := kubernetes.NewForConfig(p.ConfigOf(c.as))
		if err != nil {
			t.Fatal(err)
		}
		_, inOwn := client.CoreV1().Pods(own).List(ctx, listed)
		_, inForeign := client.CoreV1().Pods(foreign).List(ctx, listed)
		_, ofNodes := client.CoreV1().Nodes().List(ctx, listed)
		for what, pair := range map[string]struct {
			want any
			err  error
		}{"own pods": {c.ownPods, inOwn}, "foreign pods": {c.foreignPods, inForeign}, "nodes": {c.allNodes, ofNodes}} {
			var got any = may
			if pair.err != nil {
				got = apierrors.ReasonForError(pair.err)
			}
			if got != pair.want {
				t.Errorf("%s, %s: got %v (%v), want %v", name, what, got, pair.err, pair.want)
			}
		}
	}
}

func TestShortTokenEnds(t *testing.T) {
	t.Parallel()
	p := Start(t)
	ctx := within(t)
	ns := p.Namespace(t, "short")
	tenant, err := p.Tenant(ctx, ns, "tenant")
	if err != nil {
		t.Fatal(err)
	}
	token, err := p.ShortToken(tenant, 3*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(p.ConfigOf(Credential{Token: token}))
	if err != nil {
		t.Fatal(err)
	}
	err = await(ctx, "the token to end", func() (bool, error) {
		_, err := client.CoreV1().Pods(ns).List(ctx, listed)
		if apierrors.IsUnauthorized(err) {
			return true, nil
		}
		return false, err
	})
	if err != nil {
		t.Error(err)
	}
	ended, err := p.ShortToken(tenant, -time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if client, err = kubernetes.NewForConfig(p.ConfigOf(Credential{Token: ended})); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Pods(ns).List(ctx, listed); !apierrors.IsUnauthorized(err) {
		t.Errorf("a token that ended before: %v", err)
	}
}

func TestKubeconfigLogsIn(t *testing.T) {
	t.Parallel()
	p := Start(t)
	ctx := within(t)
	ns := p.Namespace(t, "kubeconfig")
	tenant, err := p.Tenant(ctx, ns, "tenant")
	if err != nil {
		t.Fatal(err)
	}
	token, err := p.Token(ctx, tenant)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := p.KubeconfigOf(Credential{Token: token}, ns)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.NewClientConfigFromBytes(raw)
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := config.Namespace(); err != nil || got != ns {
		t.Errorf("its namespace is %q (%v), want %q", got, err, ns)
	}
	rest, err := config.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Pods(ns).List(ctx, listed); err != nil {
		t.Error(err)
	}
}

func TestRequestsAreCountedByUser(t *testing.T) {
	t.Parallel()
	p := Start(t)
	ctx := within(t)
	ns := p.Namespace(t, "counted")
	tenant, err := p.Tenant(ctx, ns, "tenant")
	if err != nil {
		t.Fatal(err)
	}
	token, err := p.Token(ctx, tenant)
	if err != nil {
		t.Fatal(err)
	}
	config := p.ConfigOf(Credential{Token: token})
	config.UserAgent = "counted/1"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Pods(ns).List(ctx, listed); err != nil {
		t.Fatal(err)
	}
	since, err := p.Mark()
	if err != nil {
		t.Fatal(err)
	}
	deploy(t, client, ns, "web", 1)
	w, err := client.AppsV1().Deployments(ns).Watch(ctx, listed)
	if err != nil {
		t.Fatal(err)
	}
	w.Stop()
	_, err = client.CoreV1().Nodes().Get(ctx, "node-1", get)
	if !apierrors.IsForbidden(err) {
		t.Fatalf("a tenant reads a node: %v", err)
	}
	got, err := p.RequestsOf(tenant.User(), since)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, r := range got {
		if r.UserAgent != "counted/1" {
			t.Errorf("the user agent of %+v", r)
		}
		said = append(said, r.Verb+" "+r.Resource+" of "+r.Namespace)
	}
	want := []string{"create deployments of " + ns, "watch deployments of " + ns, "get nodes of "}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Error(diff)
	}
}
