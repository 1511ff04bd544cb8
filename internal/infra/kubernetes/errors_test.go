package kubernetes

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

func TestWrap(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	said := func(code int32, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: message}}
	}
	for _, tt := range []struct {
		name string
		err  error
		want lcm.Kind
	}{
		{"forbidden", apierrors.NewForbidden(pods, "a", errors.New("no")), lcm.KindTerminal},
		{"quota", said(403, `pods "a" is forbidden: exceeded quota: q`), lcm.KindTerminal},
		{"no account yet", said(403, `pods "a" is forbidden: error looking up service account ns/default: serviceaccount "default" not found`), lcm.KindRetryable},
		{"invalid", said(422, "Deployment is invalid"), lcm.KindTerminal},
		{"refused by a webhook", said(400, `admission webhook "x" denied the request: no`), lcm.KindTerminal},
		{"a webhook that does not answer", said(500, `failed calling webhook "x"`), lcm.KindRetryable},
		{"a field that there is not", said(500, "failed to create typed patch object (ns/a; apps/v1, Kind=Deployment): .spec.x: field not declared in schema"), lcm.KindTerminal},
		{"too many requests", said(429, "later"), lcm.KindRetryable},
		{"conflict", apierrors.NewConflict(pods, "a", errors.New("changed")), lcm.KindRetryable},
		{"broken", said(503, "etcd is away"), lcm.KindRetryable},
		{"no connection", &url.Error{Op: "Get", Err: &net.OpError{Op: "dial", Err: errors.New("refused")}}, lcm.KindRetryable},
		{"credentials", said(401, "Unauthorized"), lcm.KindRetryable},
		{"a name of no namespace", errors.New(`invalid namespace "a/b": [may not contain '/']`), lcm.KindTerminal},
		{"an answer that is no JSON", errors.New("invalid character '<' looking for beginning of value"), lcm.KindRetryable},
		{"no address", &url.Error{Op: "Get", Err: errors.New(`unsupported protocol scheme "ftp"`)}, lcm.KindTerminal},
		{"canceled", context.Canceled, lcm.KindCanceled},
		{"of ours", lcm.Errorf(lcm.KindInvalid, "x"), lcm.KindInvalid},
	} {
		c := &cluster{name: "vim", driver: &Driver{cfg: Config{}.withDefaults()}, readyAt: time.Now()}
		if err := c.wrap("do it", tt.err); !lcm.Is(err, tt.want) {
			t.Errorf("%s: %s %v, want %s", tt.name, lcm.KindOf(err), err, tt.want)
		}
	}
	if !terminating(&apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "NamespaceTerminating"}}}}}) {
		t.Error("a namespace that is being terminated is not known")
	}
}

// TestDiscreet: what the API server says of a Secret holds nothing of what is in it.
func TestDiscreet(t *testing.T) {
	said := func(code int32, message string, causes ...metav1.StatusCause) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: "Why", Message: message, Details: &metav1.StatusDetails{Causes: causes}}}
	}
	secret := doc(t, true, "{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {key: aHVudGVyMg==, pin: 1234567}, stringData: {token: swordfish}}")
	for _, tt := range []struct {
		name  string
		err   error
		want  string
		class lcm.Kind
	}{
		{"a type", said(500, "failed to create typed patch object (ns/a; /v1, Kind=Secret): .data.pin: expected string, got &value.valueUnstructured{Value:1234567}"), "the API server refuses it (500 Why)", lcm.KindTerminal},
		{"invalid", said(422, `Secret is invalid: data[key]: Invalid value: "hunter2"`, metav1.StatusCause{Field: "data[key]", Message: "hunter2"}), "data[key]", lcm.KindTerminal},
		{"a webhook", said(403, "denied: swordfish is weak"), "the API server refuses it (403 Why)", lcm.KindTerminal},
		{"of something else", said(403, "exceeded quota: few"), "exceeded quota: few", lcm.KindTerminal},
		{"passing", said(503, "etcd is away"), "etcd is away", lcm.KindRetryable},
	} {
		d := &Driver{cfg: Config{}.withDefaults()}
		c := &cluster{name: "vim", driver: d, readyAt: time.Now()}
		err := d.refusal(c, &infra{Namespace: "ns"}, &secret, tt.err)
		for _, value := range []string{"hunter2", "aHVudGVyMg", "1234567", "swordfish"} {
			if strings.Contains(err.Error(), value) {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
		if !strings.Contains(err.Error(), tt.want) || !lcm.Is(err, tt.class) {
			t.Errorf("%s: %s %v", tt.name, lcm.KindOf(err), err)
		}
	}
	config := doc(t, true, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {key: open}}")
	if err := said(422, "open is invalid"); !errors.Is(discreet(&config, err), err) {
		t.Error("what is no secret is hidden")
	}
}
