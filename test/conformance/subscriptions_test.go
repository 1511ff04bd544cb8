package conformance

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

// callbacks is a subscriber with any number of callback URIs, which are the paths of one server.
type callbacks struct {
	t        testing.TB
	url      string
	contract *contract

	mu    sync.Mutex
	count int
	got   map[string][]told // by path
	tests map[string]int
}

// told is a notification that came in.
type told struct {
	ID, NotificationType, NotificationStatus, OperationState, VnfInstanceID, VnfLcmOpOccID, SubscriptionID string
	Error                                                                                                  *sol003.ProblemDetails
	Links                                                                                                  map[string]sol003.Link `json:"_links"`

	authorization string
}

func newCallbacks(t *testing.T) *callbacks {
	t.Helper()
	contract, err := newContract("notification.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := &callbacks{t: t, contract: contract, got: map[string][]told{}, tests: map[string]int{}}
	srv := httptest.NewServer(c)
	t.Cleanup(srv.Close)
	c.url = srv.URL
	return c
}

// ServeHTTP answers as a good subscriber does; beneath /refuse as a bad one.
func (c *callbacks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	as := r.Clone(r.Context())
	as.URL.Path = "/callback"
	if err := c.contract.request(as, body); err != nil {
		c.t.Errorf("%s of the callback: %v\n%s", r.Method, err, body)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case strings.HasPrefix(r.URL.Path, "/refuse"):
		w.WriteHeader(http.StatusTeapot)
		return
	case r.Method == http.MethodGet:
		c.tests[r.URL.Path]++
	default:
		n := told{authorization: r.Header.Get("Authorization")}
		if err := json.Unmarshal(body, &n); err != nil {
			c.t.Errorf("a notification: %v: %s", err, body)
		}
		c.got[r.URL.Path] = append(c.got[r.URL.Path], n)
	}
	w.WriteHeader(http.StatusNoContent)
}

// fresh is a callback path that nobody has subscribed with.
func (c *callbacks) fresh() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	return "/cb/" + strconv.Itoa(c.count)
}

// of returns what a callback was told, each notification once.
func (c *callbacks) of(path string) []told {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []told
	for _, n := range c.got[path] {
		if !slices.ContainsFunc(out, func(o told) bool { return o.ID == n.ID }) {
			out = append(out, n)
		}
	}
	return out
}

// subscribed makes a subscription with more members than its callback, and returns its id and its callback's path.
func (x *exam) subscribed(more string) (id, path string) {
	x.t.Helper()
	path = x.callback.fresh()
	a := x.want(201, "POST", x.toSubscribe(path, more))
	return decode[sol003.LccnSubscription](x, a).Id, path
}

func (x *exam) toSubscribe(path, more string) request {
	return request{path: subscriptions, body: `{"callbackUri":"` + x.callback.url + path + `"` + more + `}`}
}

// subscriptionCases are those of subscriptions as resources (§5.4.18, §5.4.19).
func subscriptionCases() []trial {
	filter := `,"filter":{"notificationTypes":["VnfLcmOperationOccurrenceNotification"],"operationTypes":["SCALE","HEAL"],"operationStates":["COMPLETED"],` +
		`"vnfInstanceSubscriptionFilter":{"vnfInstanceNames":["a"],"vnfProductsFromProviders":[{"vnfProvider":"p","vnfProducts":[{"vnfProductName":"n",` +
		`"versions":[{"vnfSoftwareVersion":"1","vnfdVersions":["2"]}]}]}]}}`
	made := func(name, more string, stretched bool) trial {
		return trial{duty{subscriptions, "POST", 201}, name, func(x *exam) *answer {
			q := x.toSubscribe(x.callback.fresh(), more)
			q.stretched = stretched
			a := x.ask("POST", q)
			s := decode[sol003.LccnSubscription](x, a)
			if want := x.open.url + at(subscription, s.Id); a.text("Location") != want || s.UnderscoreLinks["self"].Href != want || a.text("ETag") == "" {
				x.t.Errorf("Location %q, ETag %q: %s", a.text("Location"), a.text("ETag"), a.body)
			}
			if got := decode[sol003.LccnSubscription](x, x.want(200, "GET", request{path: at(subscription, s.Id)})); !cmp.Equal(got, s) {
				x.t.Errorf("answered %+v, read %+v", s, got)
			}
			return a
		}}
	}
	bad := func(status int, name, more string) trial {
		return asks(subscriptions, "POST", status, name, func(x *exam) request { return x.toSubscribe(x.callback.fresh(), more) })
	}
	return []trial{
		made("with nothing but a callback", "", false),
		made("with a filter of every attribute", filter, false),
		made("with basic authentication", `,"authentication":{"authType":["BASIC"],"paramsBasic":{"userName":"u","password":"the-secret"}}`, false),
		made("as Tacker's guides write it", `,"subscriptionAuthentication":{"authType":["BASIC"],"paramsBasic":{"userName":"u","password":"the-secret"}},`+
			`"filter":{"vnfInstanceSubscriptionFilter":{"vnfProductsFromProviders":{"vnfProvider":"p"}}}`, true),
		{duty{subscriptions, "POST", 303}, "the same callback and filter", func(x *exam) *answer {
			q := x.toSubscribe(x.callback.fresh(), filter)
			first := x.want(201, "POST", q)
			a := x.ask("POST", q)
			if a.text("Location") != first.text("Location") || len(a.body) > 0 {
				x.t.Errorf("Location %q, then %q with %s", first.text("Location"), a.text("Location"), a.body)
			}
			return a
		}},
		{duty{subscriptions, "POST", 201}, "Idempotency-Key comes again", func(x *exam) *answer {
			q := x.toSubscribe(x.callback.fresh(), "")
			q.headers = []string{"Idempotency-Key: subscribe-1"}
			first, again := x.want(201, "POST", q), x.ask("POST", q)
			if string(first.body) != string(again.body) {
				x.t.Errorf("first %s, then %s", first.body, again.body)
			}
			return again
		}},
		{duty{subscriptions, "POST", 422}, "Idempotency-Key of another request", func(x *exam) *answer {
			q := x.toSubscribe(x.callback.fresh(), "")
			q.headers = []string{"Idempotency-Key: subscribe-2"}
			x.want(201, "POST", q)
			another := x.toSubscribe(x.callback.fresh(), "")
			another.headers = q.headers
			return x.ask("POST", another)
		}},
		{duty{subscriptions, "POST", 422}, "Idempotency-Key of another request, for what is there", func(x *exam) *answer {
			q := x.toSubscribe(x.callback.fresh(), "")
			x.want(201, "POST", q)
			another := x.toSubscribe(x.callback.fresh(), "")
			another.headers = []string{"Idempotency-Key: subscribe-3"}
			x.want(201, "POST", another)
			q.headers = another.headers
			return x.ask("POST", q)
		}},
		asks(subscriptions, "POST", 400, "the callback does not answer 204", func(x *exam) request { return x.toSubscribe("/refuse", "") }),
		sends(subscriptions, "POST", 400, "nobody is at the callback", `{"callbackUri":"http://127.0.0.1:9/"}`),
		sends(subscriptions, "POST", 400, "the callback is a metadata service", `{"callbackUri":"http://169.254.169.254/latest"}`),
		sends(subscriptions, "POST", 400, "no callback", `{}`),
		sends(subscriptions, "POST", 400, "the callback is no URI", `{"callbackUri":"here"}`),
		bad(400, "no such notification", `,"filter":{"notificationTypes":["Other"]}`),
		bad(400, "no such operation", `,"filter":{"operationTypes":["OTHER"]}`),
		bad(400, "no such state", `,"filter":{"operationStates":["OTHER"]}`),
		bad(400, "no such authentication", `,"authentication":{"authType":["OTHER"]}`),
		bad(400, "no authentication after all", `,"authentication":{"authType":[]}`),

		{duty{subscription, "GET", 200}, "with its filter", func(x *exam) *answer {
			id, path := x.subscribed(filter)
			a := x.ask("GET", request{path: at(subscription, id)})
			if s := decode[sol003.LccnSubscription](x, a); s.CallbackUri != x.callback.url+path || s.Filter == nil || len(s.Filter.OperationTypes) != 2 {
				x.t.Errorf("%s", a.body)
			}
			return a
		}},
		{duty{subscription, "GET", 304}, "the ETag that is known", func(x *exam) *answer {
			id, _ := x.subscribed("")
			return x.unchanged(at(subscription, id))
		}},
		{duty{subscription, "DELETE", 204}, "and gone", func(x *exam) *answer {
			id, _ := x.subscribed("")
			a := x.ask("DELETE", request{path: at(subscription, id)})
			x.want(404, "GET", request{path: at(subscription, id)})
			x.want(404, "DELETE", request{path: at(subscription, id)})
			return a
		}},
		{duty{subscription, "DELETE", 204}, "If-Match holds", func(x *exam) *answer {
			id, _ := x.subscribed("")
			tag := x.want(200, "GET", request{path: at(subscription, id)}).text("ETag")
			return x.ask("DELETE", request{path: at(subscription, id), headers: []string{"If-Match: " + tag}})
		}},
		asks(subscription, "DELETE", 412, "If-Match does not hold", func(x *exam) request {
			id, _ := x.subscribed("")
			return request{path: at(subscription, id), headers: []string{`If-Match: "99"`}}
		}),
	}
}

// notificationCases are those of what this program sends to a callback (§5.4.20).
func notificationCases() []trial {
	// tells is a case of what a callback is told, type and state in order, of a VNF that act makes and does something with.
	tells := func(name, more string, act func(x *exam) string, want ...string) trial {
		return trial{duty{callback, "POST", 204}, name, func(x *exam) *answer {
			id, path := x.subscribed(more)
			vnf := act(x)
			var got []told
			x.until("all is told", func() bool {
				got = slices.DeleteFunc(x.callback.of(path), func(n told) bool { return n.VnfInstanceID != vnf })
				return len(got) >= len(want)
			})
			var words []string
			for _, n := range got {
				word := strings.TrimSuffix(strings.TrimPrefix(n.NotificationType, "Vnf"), "Notification")
				if n.OperationState != "" {
					word = n.NotificationStatus + " " + n.OperationState
				}
				words = append(words, word)
				if n.SubscriptionID != id || n.Links["subscription"].Href != x.open.url+at(subscription, id) || n.Links["vnfInstance"].Href != x.open.url+at(instance, vnf) {
					x.t.Errorf("%+v", n)
				}
				if n.OperationState == "FAILED_TEMP" && n.Error == nil {
					x.t.Errorf("no error: %+v", n)
				}
			}
			if diff := cmp.Diff(want, words); diff != "" {
				x.t.Errorf("(- wanted, + told)\n%s", diff)
			}
			return nil
		}}
	}
	life := func(x *exam) string {
		id := x.instantiated(x.open)
		x.in(x.open, x.started(x.open, terminate, id, `{"terminationType":"FORCEFUL"}`), "COMPLETED")
		x.want(204, "DELETE", request{path: at(instance, id)})
		return id
	}
	operation := []string{"START STARTING", "START PROCESSING", "RESULT COMPLETED"}
	return []trial{
		{duty{callback, "GET", 204}, "the test of a callback", func(x *exam) *answer {
			_, path := x.subscribed("")
			x.callback.mu.Lock()
			defer x.callback.mu.Unlock()
			if n := x.callback.tests[path]; n != 1 {
				x.t.Errorf("the callback was tried %d times", n)
			}
			return nil
		}},
		tells("a whole life", "", life, slices.Concat([]string{"IdentifierCreation"}, operation, operation, []string{"IdentifierDeletion"})...),
		tells("results only", `,"filter":{"notificationTypes":["VnfLcmOperationOccurrenceNotification"],"operationStates":["COMPLETED"]}`, life,
			"RESULT COMPLETED", "RESULT COMPLETED"),
		tells("one operation only", `,"filter":{"notificationTypes":["VnfLcmOperationOccurrenceNotification"],"operationTypes":["TERMINATE"]}`, life, operation...),
		tells("identifiers only", `,"filter":{"notificationTypes":["VnfIdentifierCreationNotification","VnfIdentifierDeletionNotification"]}`, life,
			"IdentifierCreation", "IdentifierDeletion"),
		tells("a modification", `,"filter":{"operationTypes":["MODIFY_INFO"],"notificationTypes":["VnfLcmOperationOccurrenceNotification"]}`, func(x *exam) string {
			id := x.created(x.open)
			x.in(x.open, x.started(x.open, instance, id, `{"vnfInstanceName":"n"}`), "COMPLETED")
			return id
		}, "START PROCESSING", "RESULT COMPLETED"),
		tells("a failure that is given up", "", func(x *exam) string {
			id, op := x.fell(x.open, "create")
			x.want(200, "POST", request{path: at(fail, op)})
			return id
		}, "IdentifierCreation", "START STARTING", "START PROCESSING", "RESULT FAILED_TEMP", "RESULT FAILED"),
		tells("a failure that is undone", "", func(x *exam) string {
			id, op := x.fell(x.open, "create")
			x.want(202, "POST", request{path: at(rollback, op)})
			x.in(x.open, op, "ROLLED_BACK")
			return id
		}, "IdentifierCreation", "START STARTING", "START PROCESSING", "RESULT FAILED_TEMP", "START ROLLING_BACK", "RESULT ROLLED_BACK"),
		{duty{callback, "POST", 204}, "with a password", func(x *exam) *answer {
			_, path := x.subscribed(`,"authentication":{"authType":["BASIC"],"paramsBasic":{"userName":"u","password":"the-secret"}}`)
			x.created(x.open)
			x.until("it is told", func() bool { return len(x.callback.of(path)) > 0 })
			if n := x.callback.of(path)[0]; n.authorization != "Basic dTp0aGUtc2VjcmV0" {
				x.t.Errorf("Authorization %q", n.authorization)
			}
			return nil
		}},
	}
}
