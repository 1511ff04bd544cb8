package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
)

// Accepted is an operation that the server has taken on.
type Accepted struct {
	// InstanceID is the VNF instance's id.
	InstanceID string
	// OpOccID is the operation occurrence's, from the Location header; "" when the server named none.
	OpOccID string
	// Silent tells that the answer had a body, so that the Python client would print nothing.
	Silent bool
}

// CreateInstance creates a VNF instance resource (SOL003 v2.6.1 §5.4.2.3.1).
func (c *Client) CreateInstance(ctx context.Context, vnfdID, name, description string) (*Object, error) {
	body := NewObject().Set("vnfdId", vnfdID)
	if description != "" {
		body.Set("vnfInstanceDescription", description)
	}
	if name != "" {
		body.Set("vnfInstanceName", name)
	}
	p, v := c.lcm("/vnf_instances")
	return c.object(ctx, request{method: http.MethodPost, path: p, version: v, body: body})
}

// Instances lists the VNF instances (§5.4.2.3.2), all pages.
func (c *Client) Instances(ctx context.Context) ([]*Object, error) {
	p, v := c.lcm("/vnf_instances")
	return c.list(ctx, request{method: http.MethodGet, path: p, version: v}, "")
}

// Instance reads one VNF instance (§5.4.3.3.2).
func (c *Client) Instance(ctx context.Context, id string) (*Object, error) {
	p, v := c.lcm("/vnf_instances/" + seg(id))
	return c.object(ctx, request{method: http.MethodGet, path: p, version: v})
}

// DeleteInstance deletes a VNF instance resource (§5.4.3.3.5).
func (c *Client) DeleteInstance(ctx context.Context, id string) error {
	p, v := c.lcm("/vnf_instances/" + seg(id))
	_, err := c.call(ctx, request{method: http.MethodDelete, path: p, version: v})
	return err
}

// Task starts an operation on a VNF instance: instantiate, terminate, heal, scale, change_ext_conn or change_vnfpkg
// (§5.4.4 to §5.4.11).
func (c *Client) Task(ctx context.Context, id, task string, body *Object) (Accepted, error) {
	p, v := c.lcm("/vnf_instances/" + seg(id) + "/" + task)
	return c.accept(ctx, id, request{method: http.MethodPost, path: p, version: v, body: body})
}

// ModifyInstance changes a VNF instance's information (§5.4.3.3.4).
func (c *Client) ModifyInstance(ctx context.Context, id string, body *Object) (Accepted, error) {
	p, v := c.lcm("/vnf_instances/" + seg(id))
	return c.accept(ctx, id, request{method: http.MethodPatch, path: p, version: v, body: body})
}

func (c *Client) accept(ctx context.Context, id string, r request) (Accepted, error) {
	a, err := c.call(ctx, r)
	if err != nil {
		return Accepted{}, err
	}
	acc := Accepted{InstanceID: id, Silent: len(a.raw) > 0}
	if u, err := url.Parse(a.header.Get("Location")); err == nil && u.Path != "" && path.Base(path.Dir(u.Path)) == "vnf_lcm_op_occs" {
		acc.OpOccID = path.Base(u.Path)
	}
	return acc, nil
}

// WaitTerminated looks every second until an instance is NOT_INSTANTIATED. After the limit it gives up with an error.
func (c *Client) WaitTerminated(ctx context.Context, id string, limit time.Duration) error {
	began := c.now()
	for {
		o, err := c.Instance(ctx, id)
		if err != nil {
			return err
		}
		if o.Text("instantiationState") == "NOT_INSTANTIATED" {
			return nil
		}
		if c.now().Sub(began) > limit {
			return fmt.Errorf("Couldn't verify vnf instance is terminated within '%d' seconds. Unable to delete vnf instance %s", int(limit.Seconds()), id)
		}
		if err := c.sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}

// OpOccQuery selects operation occurrences.
type OpOccQuery struct {
	// Filter is an attribute-based filter (SOL013 §5.2).
	Filter string
	// Fields and ExcludeFields are attribute selectors (SOL013 §5.3). Labels of columns may be among what is excluded: the
	// server is not told of them.
	Fields, ExcludeFields string
}

// OpOccs lists operation occurrences (§5.4.12.3.2), all pages.
func (c *Client) OpOccs(ctx context.Context, q OpOccQuery) ([]*Object, error) {
	p, v := c.lcm("/vnf_lcm_op_occs")
	values := url.Values{}
	set(values, "filter", q.Filter)
	set(values, "fields", q.Fields)
	exclude := slices.DeleteFunc(strings.Split(q.ExcludeFields, ","), isOpOccLabel)
	set(values, "exclude_fields", strings.Join(exclude, ","))
	return c.list(ctx, request{method: http.MethodGet, path: p, version: v, query: values.Encode()}, "")
}

func set(v url.Values, key, value string) {
	if value != "" {
		v.Set(key, value)
	}
}

// OpOcc reads one operation occurrence (§5.4.13.3.2).
func (c *Client) OpOcc(ctx context.Context, id string) (*Object, error) {
	p, v := c.lcm("/vnf_lcm_op_occs/" + seg(id))
	return c.object(ctx, request{method: http.MethodGet, path: p, version: v})
}

// OpTask sends retry or rollback to an operation occurrence (§5.4.14, §5.4.15).
func (c *Client) OpTask(ctx context.Context, id, task string) error {
	p, v := c.lcm("/vnf_lcm_op_occs/" + seg(id) + "/" + task)
	_, err := c.call(ctx, request{method: http.MethodPost, path: p, version: v})
	return err
}

// FailOp marks an operation occurrence as finally failed and returns it (§5.4.16).
func (c *Client) FailOp(ctx context.Context, id string) (*Object, error) {
	p, v := c.lcm("/vnf_lcm_op_occs/" + seg(id) + "/fail")
	return c.object(ctx, request{method: http.MethodPost, path: p, version: v})
}

// CancelOp cancels an operation occurrence, GRACEFUL or FORCEFUL (§5.4.17).
func (c *Client) CancelOp(ctx context.Context, id, mode string) error {
	p, v := c.lcm("/vnf_lcm_op_occs/" + seg(id) + "/cancel")
	body := NewObject().Set("cancelMode", mode)
	_, err := c.call(ctx, request{method: http.MethodPost, path: p, version: v, body: body})
	return err
}

// Versions reads the versions of the API, of one major version when major is not 0 (§5.4.1, SOL013 §9.3).
func (c *Client) Versions(ctx context.Context, major int) (*Object, error) {
	p := "/vnflcm/api_versions"
	switch major {
	case 0:
	case 1, 2:
		p = fmt.Sprintf("/vnflcm/v%d/api_versions", major)
	default:
		return nil, &InputError{Reason: fmt.Sprintf("Major version %d is not supported", major)}
	}
	return c.object(ctx, request{method: http.MethodGet, path: p, version: "2.0.0"})
}

// CreateSubscription subscribes to notifications (§5.4.18.3.1).
func (c *Client) CreateSubscription(ctx context.Context, body *Object) (*Object, error) {
	p, v := c.lcm("/subscriptions")
	return c.object(ctx, request{method: http.MethodPost, path: p, version: v, body: body})
}

// Subscriptions lists subscriptions (§5.4.18.3.2), all pages.
func (c *Client) Subscriptions(ctx context.Context, filter string) ([]*Object, error) {
	p, v := c.lcm("/subscriptions")
	values := url.Values{}
	set(values, "filter", filter)
	return c.list(ctx, request{method: http.MethodGet, path: p, version: v, query: values.Encode()}, "")
}

// Subscription reads one subscription (§5.4.19.3.2).
func (c *Client) Subscription(ctx context.Context, id string) (*Object, error) {
	p, v := c.lcm("/subscriptions/" + seg(id))
	return c.object(ctx, request{method: http.MethodGet, path: p, version: v})
}

// DeleteSubscription ends a subscription (§5.4.19.3.5).
func (c *Client) DeleteSubscription(ctx context.Context, id string) error {
	p, v := c.lcm("/subscriptions/" + seg(id))
	_, err := c.call(ctx, request{method: http.MethodDelete, path: p, version: v})
	return err
}
