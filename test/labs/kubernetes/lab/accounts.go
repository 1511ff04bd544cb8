package lab

import (
	"context"
	"crypto/rand"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Credential is a way to log in: a bearer token, or a client certificate with its key (PEM), or neither.
type Credential struct {
	Token            string
	Certificate, Key []byte
}

// Account is a ServiceAccount.
type Account struct {
	Namespace, Name, UID string
}

// User is what the API server calls the account, as [Request] names it.
func (a Account) User() string { return "system:serviceaccount:" + a.Namespace + ":" + a.Name }

// everything is all that there is to be allowed.
var everything = rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}

// CreateNamespace makes a namespace whose name begins with prefix and that no other has, and returns its name when pods
// can be made in it.
func (p *Plane) CreateNamespace(ctx context.Context, prefix string) (string, error) {
	name, err := unique(prefix)
	if err != nil {
		return "", err
	}
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := p.Client.CoreV1().Namespaces().Create(ctx, n, metav1.CreateOptions{}); err != nil {
		return "", fmt.Errorf("make the namespace %s: %w", name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	return name, p.awaitAccounts(ctx, name)
}

// RemoveNamespace deletes a namespace and waits until it is gone. Its pods are taken away first: while any is there,
// Kubernetes looks again only after half the time that they are given to end, which is 15 seconds for most.
func (p *Plane) RemoveNamespace(ctx context.Context, name string) error {
	background, now := metav1.DeletePropagationBackground, int64(0)
	gone := metav1.DeleteOptions{PropagationPolicy: &background}
	all := metav1.ListOptions{}
	apps, batch, core := p.Client.AppsV1(), p.Client.BatchV1(), p.Client.CoreV1()
	err := errors.Join(
		batch.CronJobs(name).DeleteCollection(ctx, gone, all), batch.Jobs(name).DeleteCollection(ctx, gone, all),
		apps.Deployments(name).DeleteCollection(ctx, gone, all), apps.StatefulSets(name).DeleteCollection(ctx, gone, all),
		apps.DaemonSets(name).DeleteCollection(ctx, gone, all), apps.ReplicaSets(name).DeleteCollection(ctx, gone, all),
		core.ReplicationControllers(name).DeleteCollection(ctx, gone, all))
	if err != nil {
		return fmt.Errorf("delete what makes pods in %s: %w", name, err)
	}
	err = await(ctx, "the pods of "+name+" to be gone", func() (bool, error) {
		err := core.Pods(name).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, all)
		if err != nil {
			return false, err
		}
		pods, err := core.Pods(name).List(ctx, all)
		return err == nil && len(pods.Items) == 0, err
	})
	if err != nil {
		return err
	}
	if err := p.dropNamespace(ctx, name); err != nil {
		return err
	}
	return await(ctx, "the namespace "+name+" to be gone", func() (bool, error) {
		_, err := core.Namespaces().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}

func (p *Plane) dropNamespace(ctx context.Context, name string) error {
	err := p.Client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the namespace %s: %w", name, err)
	}
	return nil
}

// Administrator makes a ServiceAccount that a ClusterRole allows everything, everywhere; with rules, only these,
// everywhere. The ClusterRole and its binding have the account's name and stay until [Plane.Dismiss].
func (p *Plane) Administrator(ctx context.Context, namespace, name string, rules ...rbacv1.PolicyRule) (Account, error) {
	a, err := p.account(ctx, namespace, name)
	if err != nil {
		return a, err
	}
	if len(rules) == 0 {
		rules = []rbacv1.PolicyRule{everything, {NonResourceURLs: []string{"*"}, Verbs: []string{"*"}}}
	}
	meta := metav1.ObjectMeta{Name: a.clusterRole()}
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}
	if _, err := p.Client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return a, fmt.Errorf("make the ClusterRole of %s: %w", a.User(), err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, Subjects: a.subjects(),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
	}
	if _, err := p.Client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return a, fmt.Errorf("bind the ClusterRole of %s: %w", a.User(), err)
	}
	return a, nil
}

// Tenant makes a ServiceAccount that a Role allows everything in its own namespace and nothing elsewhere; with rules,
// only these. All of it goes with the namespace.
func (p *Plane) Tenant(ctx context.Context, namespace, name string, rules ...rbacv1.PolicyRule) (Account, error) {
	a, err := p.account(ctx, namespace, name)
	if err != nil {
		return a, err
	}
	if len(rules) == 0 {
		rules = []rbacv1.PolicyRule{everything}
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	if _, err := p.Client.RbacV1().Roles(namespace).Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return a, fmt.Errorf("make the Role of %s: %w", a.User(), err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: a.subjects(),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
	}
	if _, err := p.Client.RbacV1().RoleBindings(namespace).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return a, fmt.Errorf("bind the Role of %s: %w", a.User(), err)
	}
	return a, nil
}

// Dismiss deletes a ServiceAccount, with its ClusterRole if it has one. Its tokens end within ten seconds, for which the
// API server remembers whom it has let in.
func (p *Plane) Dismiss(ctx context.Context, a Account) error {
	known := func(err error) error {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	var now metav1.DeleteOptions
	return errors.Join(
		known(p.Client.CoreV1().ServiceAccounts(a.Namespace).Delete(ctx, a.Name, now)),
		known(p.Client.RbacV1().ClusterRoleBindings().Delete(ctx, a.clusterRole(), now)),
		known(p.Client.RbacV1().ClusterRoles().Delete(ctx, a.clusterRole(), now)))
}

func (p *Plane) account(ctx context.Context, namespace, name string) (Account, error) {
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	made, err := p.Client.CoreV1().ServiceAccounts(namespace).Create(ctx, sa, metav1.CreateOptions{})
	if err != nil {
		return Account{}, fmt.Errorf("make the ServiceAccount %s in %s: %w", name, namespace, err)
	}
	return Account{Namespace: namespace, Name: name, UID: string(made.UID)}, nil
}

func (a Account) subjects() []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: a.Namespace, Name: a.Name}}
}

func (a Account) clusterRole() string { return "lab:" + a.Namespace + ":" + a.Name }

// Token has the API server make a token of the account, which is good for an hour.
func (p *Plane) Token(ctx context.Context, a Account) (string, error) {
	seconds := int64(time.Hour / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	made, err := p.Client.CoreV1().ServiceAccounts(a.Namespace).CreateToken(ctx, a.Name, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("make a token of %s: %w", a.User(), err)
	}
	return made.Status.Token, nil
}

// leeway is how long the API server takes a token that has ended: clocks may differ.
const leeway = time.Minute

// ShortToken makes a token of the account that the API server takes for about life from now, which may be shorter than
// the ten minutes that are the least it would grant itself. One that it has seen good it may take ten seconds longer.
func (p *Plane) ShortToken(a Account, life time.Duration) (string, error) {
	key, err := readKey(filepath.Join(p.Dir, "keys", "tokens.key"))
	if err != nil {
		return "", err
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, nil)
	if err != nil {
		return "", fmt.Errorf("sign tokens: %w", err)
	}
	ends := time.Now().Add(life - leeway)
	claims := jwt.Claims{
		Issuer: issuer, Subject: a.User(), Audience: jwt.Audience{issuer},
		IssuedAt: jwt.NewNumericDate(ends.Add(-time.Hour)), NotBefore: jwt.NewNumericDate(ends.Add(-time.Hour)),
		Expiry: jwt.NewNumericDate(ends),
	}
	private := map[string]any{"kubernetes.io": map[string]any{
		"namespace": a.Namespace, "serviceaccount": map[string]any{"name": a.Name, "uid": a.UID},
	}}
	token, err := jwt.Signed(signer).Claims(claims).Claims(private).Serialize()
	if err != nil {
		return "", fmt.Errorf("sign a token of %s: %w", a.User(), err)
	}
	return token, nil
}

// LastingToken makes a Secret with a token of the account that does not end before the Secret does, and returns both
// the token and the Secret's name.
func (p *Plane) LastingToken(ctx context.Context, a Account) (token, secret string, err error) {
	secret, err = unique(a.Name + "-token")
	if err != nil {
		return "", "", err
	}
	secrets := p.Client.CoreV1().Secrets(a.Namespace)
	_, err = secrets.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: secret, Annotations: map[string]string{corev1.ServiceAccountNameKey: a.Name}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}, metav1.CreateOptions{})
	if err != nil {
		return "", "", fmt.Errorf("make a Secret for a token of %s: %w", a.User(), err)
	}
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	err = await(ctx, "the token in "+secret, func() (bool, error) {
		s, err := secrets.Get(ctx, secret, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		token = string(s.Data[corev1.ServiceAccountTokenKey])
		return token != "", nil
	})
	return token, secret, err
}

// Certificate makes a client certificate of a user, in groups, with its key, both PEM.
func (p *Plane) Certificate(user string, groups ...string) (Credential, error) {
	ca, err := readAuthority(filepath.Join(p.Dir, "keys"))
	if err != nil {
		return Credential{}, err
	}
	cert, key, err := ca.issue(pkix.Name{CommonName: user, Organization: groups}, nil, nil)
	return Credential{Certificate: cert, Key: key}, err
}

// ConfigOf returns the way in with a credential, without a limit on requests.
func (p *Plane) ConfigOf(c Credential) *rest.Config {
	return &rest.Config{Host: p.URL, QPS: -1, BearerToken: c.Token, TLSClientConfig: rest.TLSClientConfig{
		CAData: p.CA, CertData: c.Certificate, KeyData: c.Key,
	}}
}

// KubeconfigOf returns a kubeconfig with a credential and, unless it is empty, a namespace.
func (p *Plane) KubeconfigOf(c Credential, namespace string) ([]byte, error) {
	const name = "lab"
	return clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: p.URL, CertificateAuthorityData: p.CA}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: c.Token, ClientCertificateData: c.Certificate, ClientKeyData: c.Key}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name, Namespace: namespace}},
		CurrentContext: name,
	})
}

func unique(prefix string) (string, error) {
	var raw [4]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return "", err
	}
	return prefix + "-" + hex.EncodeToString(raw[:]), nil
}
