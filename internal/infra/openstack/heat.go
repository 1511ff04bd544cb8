package openstack

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
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
	Links    []gophercloud.Link `json:"links"`
}

// stack returns the id of the stack that the resource is in, "" when the answer does not tell.
func (r *resource) stack() string {
	for _, l := range r.Links {
		if l.Rel != "stack" {
			continue
		}
		u, err := url.Parse(l.Href)
		if err != nil {
			return ""
		}
		return u.Path[strings.LastIndexByte(u.Path, '/')+1:]
	}
	return ""
}

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
	heat, err := c.heat()
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.driver.cfg.CallTimeout)
	defer cancel()
	options := &gophercloud.RequestOpts{OkCodes: ok, JSONBody: body, JSONResponse: answer}
	resp, err := heat.Request(ctx, method, heat.ServiceURL(path...), options)
	if err != nil {
		return statusOf(err), c.wrap(doing, err)
	}
	if answer == nil && resp.Body != nil {
		_ = resp.Body.Close()
	}
	return resp.StatusCode, nil
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

// failures words what is wrong below a stack: the resources that failed, the innermost last, with their reasons.
func (c *cloud) failures(ctx context.Context, s *stack) string {
	list, err := c.resources(ctx, s.Name, s.ID)
	if err != nil {
		return ""
	}
	const most = 5
	var said []string
	for n := range list {
		r := &list[n]
		if !strings.HasSuffix(r.Status, "_FAILED") || strings.Contains(r.Reason, "aborted") && len(said) > 0 {
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
