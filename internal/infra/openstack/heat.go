package openstack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// stack is a Heat stack as far as the driver looks at it.
type stack struct {
	ID      string    `json:"id"`
	Name    string    `json:"stack_name"`
	Status  string    `json:"stack_status"`
	Reason  string    `json:"stack_status_reason"`
	Updated string    `json:"updated_time"`
	Tags    stackTags `json:"tags"`
}

// state is what tells one action's outcome from the next one's.
func (s *stack) state() string { return s.Status + "\n" + s.Updated + "\n" + s.Reason }

// stackTags are a stack's tags; Heat writes a list, null, or the text that it was given.
type stackTags []string

// UnmarshalJSON implements json.Unmarshaler.
func (t *stackTags) UnmarshalJSON(raw []byte) error {
	var list []string
	if json.Unmarshal(raw, &list) == nil {
		*t = list
		return nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	*t = strings.Split(s, ",")
	return nil
}

// resource is a resource of a stack or of one nested in it.
type resource struct {
	Name     string             `json:"resource_name"`
	Type     string             `json:"resource_type"`
	ID       string             `json:"physical_resource_id"`
	Status   string             `json:"resource_status"`
	Reason   string             `json:"resource_status_reason"`
	Creation string             `json:"creation_time"`
	Users    []string           `json:"required_by"` // the resources of the stack that are built on it
	Links    []gophercloud.Link `json:"links"`
}

// link returns the name and the id of the stack that the link of that kind leads to, "" when the answer does not tell.
func (r *resource) link(rel string) (name, id string) {
	for _, l := range r.Links {
		if l.Rel != rel {
			continue
		}
		u, err := url.Parse(l.Href)
		if err != nil {
			return "", ""
		}
		_, place, _ := strings.Cut(u.Path, "/stacks/")
		name, id, _ = strings.Cut(place, "/")
		id, _, _ = strings.Cut(id, "/")
		return name, id
	}
	return "", ""
}

// stack returns the id of the stack that the resource is in, "" when the answer does not tell.
func (r *resource) stack() string {
	_, id := r.link("stack")
	return id
}

// failed tells whether the resource's last action, or a check of it, has failed.
func (r *resource) failed() bool { return strings.HasSuffix(r.Status, "_FAILED") }

// working tells whether something is being done to the resource.
func (r *resource) working() bool { return strings.HasSuffix(r.Status, "_IN_PROGRESS") }

// unbegun tells whether the resource is only listed: Heat lists what an update will create, as initialised, before the update
// itself shows. What a cancelled update has not come to stays so for ever.
func (r *resource) unbegun() bool { return strings.HasPrefix(r.Status, "INIT_") }

// stackRequest is the body that creates or replaces a stack.
type stackRequest struct {
	Name            string            `json:"stack_name"`
	Template        string            `json:"template"`
	Files           map[string]string `json:"files"`
	Parameters      json.RawMessage   `json:"parameters"`
	TimeoutMins     int               `json:"timeout_mins"`
	DisableRollback bool              `json:"disable_rollback"`
	Tags            string            `json:"tags,omitempty"`
}

// call makes one call to Heat. A status that is not in ok is an error, classed.
func (c *cloud) call(ctx context.Context, doing, method string, body, answer any, ok []int, path ...string) (int, error) {
	heat, err := c.heat(ctx)
	if err != nil {
		return 0, err
	}
	return c.exchange(ctx, heat, doing, method, body, answer, ok, path)
}

// findStack returns the stack of that name, nil when there is none. Deleted stacks do not count.
func (c *cloud) findStack(ctx context.Context, name string) (*stack, error) {
	var list struct {
		Stacks []stack `json:"stacks"`
	}
	query := "stacks?" + url.Values{"name": {name}}.Encode()
	if _, err := c.call(ctx, "look for stack "+name, http.MethodGet, nil, &list, []int{http.StatusOK}, query); err != nil {
		return nil, err
	}
	for _, s := range list.Stacks {
		if s.Name == name && s.Status != "DELETE_COMPLETE" {
			return c.stack(ctx, name, s.ID)
		}
	}
	return nil, nil
}

// stack reads a stack by name and id, nil when there is none any more.
func (c *cloud) stack(ctx context.Context, name, id string) (*stack, error) {
	var one struct {
		Stack stack `json:"stack"`
	}
	status, err := c.call(ctx, "read stack "+name, http.MethodGet, nil, &one, []int{http.StatusOK}, "stacks", name, id)
	if status == http.StatusNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &one.Stack, nil
}

// createStack creates a stack and returns its id. Status 409 says that the name is taken.
func (c *cloud) createStack(ctx context.Context, r *stackRequest) (id string, status int, err error) {
	var made struct {
		Stack stack `json:"stack"`
	}
	status, err = c.call(ctx, "create stack "+r.Name, http.MethodPost, r, &made, []int{http.StatusCreated}, "stacks")
	return made.Stack.ID, status, err
}

// replaceStack updates a stack to a request: what the request does not name falls back to the template's defaults.
func (c *cloud) replaceStack(ctx context.Context, id string, r *stackRequest) error {
	_, err := c.call(ctx, "update stack "+r.Name, http.MethodPut, r, nil, []int{http.StatusAccepted, http.StatusOK}, "stacks", r.Name, id)
	return err
}

// deleteStack asks Heat to delete a stack; one that is gone is fine.
func (c *cloud) deleteStack(ctx context.Context, name, id string) error {
	_, err := c.call(ctx, "delete stack "+name, http.MethodDelete, nil, nil,
		[]int{http.StatusNoContent, http.StatusAccepted, http.StatusOK, http.StatusNotFound, http.StatusGone}, "stacks", name, id)
	return err
}

// nestedDepth is how deep below a stack resources are looked for; Heat's own limit is no deeper by default.
const nestedDepth = 5

// resources lists the resources of a stack and of all stacks nested in it, in Heat's order.
func (c *cloud) resources(ctx context.Context, name, id string) ([]resource, error) {
	var list struct {
		Resources []resource `json:"resources"`
	}
	_, err := c.call(ctx, "list the resources of stack "+name, http.MethodGet, nil, &list, []int{http.StatusOK},
		"stacks", name, id, "resources?nested_depth="+strconv.Itoa(nestedDepth))
	return list.Resources, err
}

// markUnhealthy has Heat's next update of the stack make a resource again. One that is gone is fine.
func (c *cloud) markUnhealthy(ctx context.Context, r *resource, why string) error {
	stackName, stackID := r.link("stack")
	body := map[string]any{"mark_unhealthy": true, "resource_status_reason": why}
	status, err := c.call(ctx, "mark resource "+r.Name+" of stack "+stackName+" as unhealthy", http.MethodPatch, body, nil,
		[]int{http.StatusOK, http.StatusAccepted, http.StatusNoContent, http.StatusNotFound}, "stacks", stackName, stackID, "resources", r.Name)
	if err != nil {
		kind := lcm.KindOf(err)
		if status == http.StatusConflict { // something is being done to it
			kind = lcm.KindRetryable
		}
		return &lcm.Error{Kind: kind, Err: err, Detail: fmt.Sprintf(
			"Failed to mark stack '%s' resource as unhealthy for resource '%s', Error: %s", stackID, r.Name, detail(err))}
	}
	return nil
}

// mend marks what a stack's next update is to make again besides what has failed: the volumes of servers that could not be
// created. Nova keeps them for the failed servers, which go only after the new ones have come.
func (c *cloud) mend(ctx context.Context, list []resource) error {
	for n := range list {
		if list[n].Type != serverType || list[n].Status != "CREATE_FAILED" {
			continue
		}
		for m := range list {
			r := &list[m]
			if r.Type != volumeType || r.failed() || r.stack() != list[n].stack() || !slices.Contains(r.Users, list[n].Name) {
				continue
			}
			if err := c.markUnhealthy(ctx, r, "its server could not be created"); err != nil {
				return err
			}
		}
	}
	return nil
}

// signal has a resource of a stack, a scaling policy, do what it is for.
func (c *cloud) signal(ctx context.Context, s *stack, name string) error {
	_, err := c.call(ctx, "signal "+name+" of stack "+s.Name, http.MethodPost, nil, nil,
		[]int{http.StatusOK, http.StatusAccepted, http.StatusNoContent}, "stacks", s.Name, s.ID, "resources", name, "signal")
	return err
}

// metadata reads the metadata of a resource of a stack.
func (c *cloud) metadata(ctx context.Context, s *stack, name string, into any) error {
	answer := struct {
		Metadata any `json:"metadata"`
	}{into}
	_, err := c.call(ctx, "read the metadata of "+name+" of stack "+s.Name, http.MethodGet, nil, &answer,
		[]int{http.StatusOK}, "stacks", s.Name, s.ID, "resources", name, "metadata")
	return err
}

// cancel ends the action that a stack is in the middle of, without rolling back; one that does not run is fine.
func (c *cloud) cancel(ctx context.Context, name, id string) error {
	_, err := c.call(ctx, "cancel the action of stack "+name, http.MethodPost, map[string]any{"cancel_without_rollback": nil}, nil,
		[]int{http.StatusOK, http.StatusAccepted, http.StatusNoContent, http.StatusBadRequest, http.StatusNotFound, http.StatusConflict},
		"stacks", name, id, "actions")
	return err
}

// failures words what is wrong below a stack: the resources that failed, with their reasons; first those that have failed
// themselves, then the stacks around them.
func (c *cloud) failures(ctx context.Context, s *stack) string {
	list, err := c.resources(ctx, s.Name, s.ID)
	if err != nil {
		return ""
	}
	const most = 5
	nests := func(r *resource) bool { _, id := r.link("nested"); return id != "" }
	slices.SortStableFunc(list, func(a, b resource) int {
		switch {
		case nests(&a) == nests(&b):
			return 0
		case nests(&b):
			return -1
		}
		return 1
	})
	var said []string
	for n := range list {
		r := &list[n]
		if !r.failed() || strings.Contains(r.Reason, "aborted") && len(said) > 0 {
			continue
		}
		if len(said) == most {
			said = append(said, "…")
			break
		}
		said = append(said, r.Name+" ("+r.Type+"): "+cut(r.Reason))
	}
	return strings.Join(said, "; ")
}
