package lab

import (
	"context"
	"crypto/rand"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// issuer is who ServiceAccounts' tokens say they are from.
const issuer = "https://kubernetes.default.svc.cluster.local"

// ports are those of one control plane, all on the loopback. The controller manager and the scheduler listen nowhere.
type ports struct {
	API  int `json:"api"`
	Etcd int `json:"etcd"`
	Peer int `json:"peer"`
	Kwok int `json:"kwok"`
}

// pickPorts finds ports that nobody listens on, above those that the kernel gives to outgoing connections: they are to
// be free still when a daemon that was killed comes back to its own. api is that of the API server, 0 for any.
func pickPorts(ctx context.Context, api int) (ports, error) {
	const from, to = 61000, 65500
	found := make([]int, 0, 4)
	if api != 0 {
		if err := portFree(ctx, api); err != nil {
			return ports{}, fmt.Errorf("port %d of the API server: %w", api, err)
		}
		found = append(found, api)
	}
	n, err := rand.Int(rand.Reader, big.NewInt(to-from))
	if err != nil {
		return ports{}, err
	}
	for i := 0; i < to-from && len(found) < cap(found); i++ {
		port := from + (int(n.Int64())+i)%(to-from)
		if port != api && portFree(ctx, port) == nil {
			found = append(found, port)
		}
	}
	if len(found) < cap(found) {
		return ports{}, fmt.Errorf("no four free ports between %d and %d", from, to)
	}
	return ports{API: found[0], Etcd: found[1], Peer: found[2], Kwok: found[3]}, nil
}

func portFree(ctx context.Context, port int) error {
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", local(port))
	if err != nil {
		return err
	}
	return ln.Close()
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// identities are the certificates of a control plane: file name to who it is.
var identities = map[string]pkix.Name{
	"apiserver":  {CommonName: "kube-apiserver"},
	"kubelet":    {CommonName: "lab:apiserver-to-kubelet", Organization: []string{"system:masters"}}, // the API server, at a node's port
	"admin":      {CommonName: "lab:admin", Organization: []string{"system:masters"}},
	"nodes":      {CommonName: "lab:nodes", Organization: []string{"system:masters"}},
	"controller": {CommonName: "system:kube-controller-manager"},
	"scheduler":  {CommonName: "system:kube-scheduler"},
}

// writeKeys makes all keys and certificates of a control plane, in its folder keys.
func writeKeys(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	ca, err := newAuthority("lab-kubernetes")
	if err != nil {
		return err
	}
	if err := ca.write(dir); err != nil {
		return err
	}
	loopback := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	for file, who := range identities {
		var names []string
		var addresses []net.IP
		switch file {
		case "apiserver":
			names = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
			addresses = append(loopback, net.IPv4(10, 96, 0, 1)) // the Service "kubernetes"
		case "nodes":
			addresses = loopback
		}
		cert, key, err := ca.issue(who, names, addresses)
		if err != nil {
			return err
		}
		if err := writePair(dir, file, cert, key); err != nil {
			return err
		}
	}
	return writeSigningKey(filepath.Join(dir, "tokens.key"))
}

// auditPolicy has every request written down that is not the control plane's own, when it comes and when it is answered.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitManagedFields: true
rules:
- level: None
  users: ["system:kube-controller-manager", "system:kube-scheduler", "system:apiserver", "lab:nodes", "lab:apiserver-to-kubelet"]
- level: None
  userGroups: ["system:serviceaccounts:kube-system", "system:nodes"]
- level: None
  nonResourceURLs: ["/readyz*", "/livez*", "/healthz*"]
- level: Metadata
`

// flags returns the arguments of each daemon. Paths are relative to the control plane's folder, which all of them work in.
func flags(p ports, apiServer []string) map[string][]string {
	etcd, peer := "http://"+local(p.Etcd), "http://"+local(p.Peer)
	apiPort := strconv.Itoa(p.API)
	return map[string][]string{
		Etcd: {
			"--name=lab", "--data-dir=etcd", "--log-level=warn",
			"--listen-client-urls=" + etcd, "--advertise-client-urls=" + etcd,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=lab=" + peer,
			"--unsafe-no-fsync", // a lab whose machine dies is made anew
		},
		APIServer: append([]string{
			"--etcd-servers=" + etcd,
			"--bind-address=127.0.0.1", "--secure-port=" + apiPort, "--advertise-address=127.0.0.1",
			"--endpoint-reconciler-type=none", // the loopback cannot be an endpoint
			"--service-cluster-ip-range=10.96.0.0/16",
			"--tls-cert-file=keys/apiserver.crt", "--tls-private-key-file=keys/apiserver.key",
			"--client-ca-file=keys/ca.crt", "--authorization-mode=Node,RBAC", "--allow-privileged=true",
			"--service-account-issuer=" + issuer,
			"--service-account-key-file=keys/tokens.key", "--service-account-signing-key-file=keys/tokens.key",
			"--kubelet-certificate-authority=keys/ca.crt", "--kubelet-preferred-address-types=InternalIP",
			"--kubelet-client-certificate=keys/kubelet.crt", "--kubelet-client-key=keys/kubelet.key",
			"--audit-policy-file=audit-policy.yaml", "--audit-log-path=" + auditFile,
			"--audit-log-mode=blocking", // what has been answered has been written down
			"--audit-log-maxsize=1000",  // MB: a log that is turned over in the middle of a test counts wrong
			"--profiling=false",
		}, apiServer...),
		Controllers: {
			"--kubeconfig=controller.kubeconfig", "--authentication-kubeconfig=controller.kubeconfig",
			"--authorization-kubeconfig=controller.kubeconfig", "--secure-port=0", "--leader-elect=false",
			"--root-ca-file=keys/ca.crt", "--service-account-private-key-file=keys/tokens.key",
			"--use-service-account-credentials=true",
			"--cluster-signing-cert-file=keys/ca.crt", "--cluster-signing-key-file=keys/ca.key",
			"--kube-api-qps=1000", "--kube-api-burst=1000", // by default, ServiceAccounts alone take it seconds
			"--enable-hostpath-provisioner=true", "--pvclaimbinder-sync-period=1s",
		},
		Scheduler: {
			"--kubeconfig=scheduler.kubeconfig", "--authentication-kubeconfig=scheduler.kubeconfig",
			"--authorization-kubeconfig=scheduler.kubeconfig", "--secure-port=0", "--leader-elect=false",
			"--kube-api-qps=1000", "--kube-api-burst=1000",
		},
		Nodes: {
			"--config=kwok.yaml", "--kubeconfig=nodes.kubeconfig",
			"--manage-all-nodes=false", "--manage-nodes-with-label-selector=" + nodeLabel + "=" + nodeLabelValue,
			"--cidr=10.244.0.1/16", "--node-ip=127.0.0.1", "--node-port=" + strconv.Itoa(p.Kwok),
			"--server-address=" + local(p.Kwok), "--tls-cert-file=keys/nodes.crt", "--tls-private-key-file=keys/nodes.key",
			"--node-lease-duration-seconds=40",
		},
	}
}

// writeConfiguration writes the files that the daemons' flags name, but for keys and kubeconfigs.
func writeConfiguration(dir string) error {
	behaviour, err := behaviourFiles.ReadFile("behaviour/pods.yaml")
	if err != nil {
		return err
	}
	nodes, err := behaviourFiles.ReadFile("behaviour/nodes.yaml")
	if err != nil {
		return err
	}
	podLog := filepath.Join(dir, "pod.log")
	kwok := fmt.Sprintf("%s\n---\n%s\n---\n"+`apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterLogs
metadata: {name: every-pod}
spec: {logs: [{logsFile: %q}]}
`, behaviour, nodes, podLog)
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "audit-policy.yaml"), []byte(auditPolicy), 0o600),
		os.WriteFile(filepath.Join(dir, "kwok.yaml"), []byte(kwok), 0o600),
		os.WriteFile(podLog, []byte("2026-01-01T00:00:00.000000000Z stdout F no container runs here: this line is the lab's\n"), 0o600))
}
