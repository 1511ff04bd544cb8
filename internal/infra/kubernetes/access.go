package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// right is something that may be done to a kind of object.
type right struct {
	verb, group, resource, sub, namespace string
}

// String says it as kubectl auth can-i does.
func (r right) String() string {
	what := r.resource
	if r.group != "" {
		what += "." + r.group
	}
	if r.sub != "" {
		what += "/" + r.sub
	}
	if r.namespace != "" {
		return fmt.Sprintf("%s %s in namespace %s", r.verb, what, r.namespace)
	}
	return fmt.Sprintf("%s %s in the cluster", r.verb, what)
}

// allowedFor is how long a right that we have counts as had.
const allowedFor = time.Minute

// review finds out whether the VIM's account has rights: by what a SelfSubjectRulesReview lists for the namespace, and by a
// SelfSubjectAccessReview each for those that are not in there. Terminal, naming those that are lacking.
func (c *cluster) review(ctx context.Context, rights []right) error {
	var lacking []string
	seen := map[right]bool{}
	for _, r := range rights {
		if seen[r] {
			continue
		}
		seen[r] = true
		ok, err := c.may(ctx, r)
		if err != nil {
			return err
		}
		if !ok {
			lacking = append(lacking, r.String())
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	if !c.settled() {
		return lcm.Errorf(lcm.KindRetryable, "VIM %s: the API server is being started", c.name)
	}
	slices.Sort(lacking)
	return lcm.Errorf(lcm.KindTerminal, "VIM %s: the account lacks the right to %s; nothing has been done", c.name, strings.Join(lacking, "; to "))
}

// may tells whether the account has a right. Where nobody may ask, the answer is that it has: the call itself will tell.
func (c *cluster) may(ctx context.Context, r right) (bool, error) {
	key := r.String()
	c.mu.Lock()
	at, ok := c.allowed[key]
	c.mu.Unlock()
	if ok && time.Since(at) < allowedFor {
		return true, nil
	}
	if r.namespace != "" {
		rules, err := once(ctx, c, "rules:"+r.namespace, func(ctx context.Context) ([]rule, error) {
			return c.rulesIn(ctx, r.namespace)
		})
		if err != nil || permit(rules, r) {
			return err == nil, err
		}
	}
	return once(ctx, c, "may:"+key, func(ctx context.Context) (bool, error) { return c.ask(ctx, r) })
}

// ask asks whether the account has one right.
func (c *cluster) ask(ctx context.Context, r right) (bool, error) {
	key := r.String()
	attributes := map[string]any{"verb": r.verb, "group": r.group, "resource": r.resource}
	if r.sub != "" {
		attributes["subresource"] = r.sub
	}
	if r.namespace != "" {
		attributes["namespace"] = r.namespace
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
		"spec": map[string]any{"resourceAttributes": attributes},
	})
	if err != nil {
		return false, fmt.Errorf("ask for the right to %s: %w", r, err)
	}
	ctx, cancel := c.call(ctx)
	defer cancel()
	result := c.raw.Post().AbsPath("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").
		SetHeader("Content-Type", "application/json").Body(body).Do(ctx)
	raw, _ := result.Raw()
	err = result.Error()
	switch {
	case isForbidden(err), isGone(err):
		return true, nil
	case err != nil:
		return false, c.wrap("ask for the right to "+key, err)
	}
	var answer struct {
		Status struct {
			Allowed bool `json:"allowed"`
		} `json:"status"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return false, c.wrap("ask for the right to "+key, err)
	}
	if answer.Status.Allowed {
		c.mu.Lock()
		c.allowed[key] = time.Now()
		c.mu.Unlock()
	}
	return answer.Status.Allowed, nil
}

// known is what an account may do in a namespace, as far as it has been listed.
type known struct {
	rules []rule
	at    time.Time
}

// rule is a rule of a SelfSubjectRulesReview.
type rule struct {
	Verbs         []string `json:"verbs"`
	APIGroups     []string `json:"apiGroups"`
	Resources     []string `json:"resources"`
	ResourceNames []string `json:"resourceNames"`
}

// rulesIn returns what the account may do in a namespace: none when that cannot be listed, or not all of it.
func (c *cluster) rulesIn(ctx context.Context, ns string) ([]rule, error) {
	c.mu.Lock()
	k, ok := c.rules[ns]
	c.mu.Unlock()
	if ok && time.Since(k.at) < allowedFor {
		return k.rules, nil
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": map[string]any{"namespace": ns},
	})
	if err != nil {
		return nil, fmt.Errorf("ask for the rights in namespace %s: %w", ns, err)
	}
	ctx, cancel := c.call(ctx)
	defer cancel()
	k = known{at: time.Now()}
	result := c.raw.Post().AbsPath("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews").
		SetHeader("Content-Type", "application/json").Body(body).Do(ctx)
	raw, _ := result.Raw()
	if err := result.Error(); err != nil && !isForbidden(err) && !isGone(err) {
		return nil, c.wrap("ask for the rights in namespace "+ns, err)
	} else if err == nil {
		var answer struct {
			Status struct {
				Rules           []rule `json:"resourceRules"`
				Incomplete      bool   `json:"incomplete"`
				EvaluationError string `json:"evaluationError"`
			} `json:"status"`
		}
		if err := json.Unmarshal(raw, &answer); err != nil {
			return nil, c.wrap("ask for the rights in namespace "+ns, err)
		}
		if s := answer.Status; !s.Incomplete && s.EvaluationError == "" { // somebody else may forbid what these allow
			k.rules = s.Rules
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.rules, func(_ string, k known) bool { return time.Since(k.at) >= allowedFor })
	c.rules[ns] = k
	return k.rules, nil
}

// permit tells whether one of the rules gives a right, for all objects of the kind.
func permit(rules []rule, r right) bool {
	has := func(list []string, values ...string) bool {
		return slices.ContainsFunc(list, func(s string) bool { return s == "*" || slices.Contains(values, s) })
	}
	resources := []string{r.resource}
	if r.sub != "" {
		resources = []string{r.resource + "/" + r.sub, "*/" + r.sub}
	}
	return slices.ContainsFunc(rules, func(rule rule) bool {
		return len(rule.ResourceNames) == 0 && has(rule.Verbs, r.verb) && has(rule.APIGroups, r.group) && has(rule.Resources, resources...)
	})
}

// rightsFor are the rights that making and removing objects takes, and finding their pods and claims.
func rightsFor(objects []object, ns string) []right {
	var out []right
	for n := range objects {
		o := &objects[n]
		verbs := []string{"get", "create", "patch", "delete"}
		if o.Once {
			verbs = []string{"create"}
		}
		for _, verb := range verbs {
			out = append(out, right{verb, o.Group, o.Resource, "", o.in(ns)})
		}
		if o.VDU != "" || o.Replicas != nil && !o.Once {
			out = append(out, right{"list", "", "pods", "", ns})
		}
		if len(o.Claims) > 0 {
			out = append(out, right{"list", "", "persistentvolumeclaims", "", ns}, right{"delete", "", "persistentvolumeclaims", "", ns},
				right{"get", "", "persistentvolumeclaims", "", ns})
		}
		switch o.groupKind() { // see alone
		case "Namespace":
			for _, k := range inNamespaces {
				out = append(out, right{"list", k.Group, k.Resource, "", o.Name})
			}
		case definitionKind:
			if plural, group, ok := strings.Cut(o.Name, "."); ok { // as it must be named
				out = append(out, right{"list", group, plural, "", ""})
			}
		}
	}
	return out
}
