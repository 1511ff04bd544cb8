package kubernetes

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
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
