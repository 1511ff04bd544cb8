package client

import (
	"context"
	"net/http"
	"net/url"
)

// AuditEvents lists the audit trail, oldest first, all pages; filter is an attribute-based filter (SOL013 §5.2).
func (c *Client) AuditEvents(ctx context.Context, filter string) ([]*Object, error) {
	values := url.Values{}
	set(values, "filter", filter)
	return c.list(ctx, request{method: http.MethodGet, path: "/vnfm/v1/audit_events", query: values.Encode()}, "")
}

// AuditList is `audit list`.
func AuditList() ShowSpec {
	return ShowSpec{columns: []column{
		{"time", "Time"}, {"user", "User"}, {"projectId", "Project ID"}, {"role", "Role"}, {"action", "Action"}, {"status", "Status"},
		{"vnfInstanceId", "VNF Instance ID"}, {"resourceId", "Resource ID"}, {"address", "Address"}, {"requestId", "Request ID"},
	}, mixed: []string{"time", "user", "projectId", "role", "action", "status", "vnfInstanceId", "resourceId", "address", "requestId"}}
}
