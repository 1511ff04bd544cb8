package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
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

// review finds out whether the VIM's account has rights, by SelfSubjectAccessReviews. Terminal, naming those that are lacking.
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
