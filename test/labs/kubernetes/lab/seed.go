package lab

import (
	"context"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// volumes is where the controller manager makes what is claimed of the default StorageClass. The place is built into it.
const volumes = "/tmp/hostpath_pv"

// seed makes what a cluster has from its first day, nodes and a place for claims, and waits until it is of use.
func (p *Plane) seed(ctx context.Context) error {
	if err := openVolumes(); err != nil {
		return err
	}
	for i := range p.state.Nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("node-%d", i+1),
			Labels: map[string]string{
				nodeLabel: nodeLabelValue, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
				corev1.LabelHostname: fmt.Sprintf("node-%d", i+1),
			},
		}}
		if _, err := p.Client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("make %s: %w", node.Name, err)
		}
	}
	reclaim, binding := corev1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name: StorageClass, Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner: "kubernetes.io/host-path", ReclaimPolicy: &reclaim, VolumeBindingMode: &binding,
	}
	if _, err := p.Client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("make the StorageClass: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readyTime, fmt.Errorf("not within %s; the logs are in %s", readyTime, p.Dir))
	defer cancel()
	return errors.Join(p.awaitNodes(ctx), p.awaitAccounts(ctx, metav1.NamespaceDefault))
}

// openVolumes makes the folder for volumes one that every user's lab can write to: whichever user's was first has made it.
func openVolumes() error {
	const everybody = 0o777 | os.ModeSticky
	if err := os.MkdirAll(volumes, 0o777); err != nil { //nolint:gosec // as /tmp is
		return err
	}
	if err := os.Chmod(volumes, everybody); err == nil {
		return nil
	}
	info, err := os.Stat(volumes)
	if err == nil && info.Mode().Perm()&0o777 != 0o777 {
		return fmt.Errorf("%s belongs to another user, who is to run: chmod 1777 %s", volumes, volumes)
	}
	return err
}

func (p *Plane) awaitNodes(ctx context.Context) error {
	return await(ctx, "the nodes to be Ready", func() (bool, error) {
		if err := p.ds[Nodes].failure(); err != nil {
			return false, err
		}
		nodes, err := p.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, n := range nodes.Items {
			if !nodeReady(n) {
				return false, nil
			}
		}
		return true, nil
	})
}

func nodeReady(n corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			// The taint of a node that has just come is taken away a little later, and pods wait for that.
			return len(n.Spec.Taints) == 0
		}
	}
	return false
}

// awaitAccounts waits until a namespace is one that pods can be made in.
func (p *Plane) awaitAccounts(ctx context.Context, namespace string) error {
	return await(ctx, "the default ServiceAccount of "+namespace, func() (bool, error) {
		for _, d := range []string{APIServer, Controllers, Scheduler} {
			if err := p.ds[d].failure(); err != nil {
				return false, err
			}
		}
		_, err := p.Client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
}
