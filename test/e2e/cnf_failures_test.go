package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	kubelab "github.com/seed-f1a0ccf1/vnfm/test/labs/kubernetes/lab"
)

// TestCNFFailures has the client instantiate what cannot be, show why, and roll it back. Nothing is left.
func TestCNFFailures(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	l := newCNFLab(t, kubelab.Start(t), "30s")
	const manifest = "Files/kubernetes/web.yaml"
	for _, c := range []struct {
		name  string
		edit  [2]string // of the manifest
		quota bool
		role  []rbacv1.PolicyRule // of the account; nil: anything in the namespace
		param map[string]any
		says  []string
	}{
		{name: "a kind that there is not", edit: [2]string{"kind: Deployment", "kind: Deploiment"}, says: []string{manifest + ":20: ", "knows no kind Deploiment of apiVersion apps/v1"}},
		{name: "bad YAML", edit: [2]string{"  replicas: 2", "  replicas: 2\n bad: ["}, says: []string{manifest + ": line "}},
		{name: "a field of another type", edit: [2]string{"replicas: 2", "replicas: many"}, says: []string{manifest + ":20: spec.replicas is not a number"}},
		{name: "an image that is not there", edit: [2]string{"nginxinc/nginx-unprivileged:", "registry.invalid/web:"}, says: []string{
			"Resource creation is not completed within 30 seconds", "Deployment NS/web is not ready: ", "container web is waiting: ImagePullBackOff",
		}},
		{name: "a quota", quota: true, says: []string{"Resource creation is not completed within 30 seconds", "exceeded quota: few"}},
		{name: "a right that is lacking", role: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"*"}, Verbs: []string{"*"}},
			{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"*"}},
		}, says: []string{"VIM a right that is lacking: the account lacks the right to create statefulsets.apps in namespace NS; ", "to delete statefulsets.apps in namespace NS", "nothing has been done"}},
		{name: "another's namespace", param: map[string]any{"namespace": "kube-system"}, says: []string{"the account lacks the right to create configmaps in namespace kube-system"}},
		{name: "a file that is not in the package", param: map[string]any{"lcm-kubernetes-def-files": []any{"Files/kubernetes/none.yaml"}}, says: []string{
			"CNF definition file with path Files/kubernetes/none.yaml is not found in vnf_artifacts.",
		}},
		{name: "half a vdu_mapping", param: map[string]any{"vdu_mapping": map[string]any{"WEB": map[string]any{"kind": "Deployment", "name": "web"}}}, says: []string{
			"Parameter input values missing 'vdu_id={STORE}' in vdu_mapping",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			token := l.token
			if c.role != nil {
				account, err := l.plane.Tenant(ctx, l.namespace, "lacking", c.role...)
				must(t, err)
				token, err = l.plane.Token(ctx, account)
				must(t, err)
				l.said.hide(token)
			}
			overlay := map[string][]byte{}
			if c.edit[0] != "" {
				overlay = edited(t, "web-cnf", manifest, c.edit[0], c.edit[1])
			}
			if c.quota {
				none := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "few"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse("1")}}}
				_, err := l.plane.Client.CoreV1().ResourceQuotas(l.namespace).Create(ctx, none, metav1.CreateOptions{})
				must(t, err)
			}
			vim := l.show(ctx, t, "vim", "register", "--config-file", l.vimFile(t, map[string]any{"bearer_token": token}), c.name).values["id"]
			raw, vnfd := variant(t, "web-cnf", overlay)
			pkg, err := l.api.Onboard(ctx, raw)
			must(t, err)
			request := onNamespace(vim, l.namespace)
			for key, value := range c.param {
				request["additionalParams"].(map[string]any)[key] = value //nolint:forcetypeassert // it is so
			}
			id := l.show(ctx, t, "vnflcm", "create", vnfd).values["ID"]
			l.ok(ctx, t, "vnflcm", "instantiate", id, l.jsonFile(t, "request.json", request))
			op := l.latest(ctx, t, id)
			l.awaitOp(ctx, t, op, sol003.LcmOperationStateFailedTemp)
			out := l.both(ctx, t, "vnflcm", "op", "show", op)
			if diff := difference(shownOp.table(t, l.get(ctx, t, opOccsPath+"/"+op)), out); diff != "" {
				t.Errorf("vnflcm op show prints %s", diff)
			}
			f := parseFields(t, out)
			var problem struct {
				Status int
				Detail string
			}
			f.json(t, "Error", &problem)
			for _, text := range c.says {
				if text = strings.ReplaceAll(text, "NS", l.namespace); !strings.Contains(problem.Detail, text) {
					t.Errorf("vnflcm op show shows the error %q, want it to say %q", problem.Detail, text)
				}
			}
			if problem.Status != 500 || f.values["Operation State"] != "FAILED_TEMP" {
				t.Errorf("vnflcm op show shows the state %s, and the status %d", f.values["Operation State"], problem.Status)
			}
			l.prints(ctx, t, fmt.Sprintf("Rollback request for LCM operation %s has been accepted\n", op), "vnflcm", "op", "rollback", op)
			l.awaitOp(ctx, t, op, sol003.LcmOperationStateRolledBack)
			l.says(ctx, t, "Vnf instance '"+id+"' is deleted successfully", "vnflcm", "delete", id)
			must(t, l.api.DeletePackage(ctx, pkg.Id))
			l.ok(ctx, t, "vim", "delete", vim)
			if c.quota {
				must(t, l.plane.Client.CoreV1().ResourceQuotas(l.namespace).Delete(ctx, "few", metav1.DeleteOptions{}))
			}
			if c.role != nil {
				for _, remove := range []error{
					l.plane.Client.RbacV1().RoleBindings(l.namespace).Delete(ctx, "lacking", metav1.DeleteOptions{}),
					l.plane.Client.RbacV1().Roles(l.namespace).Delete(ctx, "lacking", metav1.DeleteOptions{}),
					l.plane.Client.CoreV1().ServiceAccounts(l.namespace).Delete(ctx, "lacking", metav1.DeleteOptions{}),
				} {
					must(t, remove)
				}
			}
			l.checkCleared(t)
		})
	}
}
