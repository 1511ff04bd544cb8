package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
	"github.com/seed-f1a0ccf1/vnfm/internal/store"
	"github.com/seed-f1a0ccf1/vnfm/internal/store/storetest"
)

// plant makes what notifications come from: a package, instances, operations.
type plant struct {
	*store.Store
	pkg string
}

func newPlant(t testing.TB) *plant {
	t.Helper()
	p := &plant{storetest.Open(t), uuid.NewString()}
	_, err := p.Pool.Exec(context.Background(), `INSERT INTO vnf_packages (id, project_id, onboarding_state, operational_state, vnfd_id, body, created_at)
		VALUES ($1, 'p', 'ONBOARDED', 'ENABLED', $2, '{}', now())`, p.pkg, p.pkg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

type fataler interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func v7() string { return uuid.Must(uuid.NewV7()).String() }

// create makes an instance with the attributes of like.
func (p *plant) create(t fataler, like lcm.Instance) *lcm.Instance {
	i := like
	i.ID, i.PackageID, i.State, i.Version, i.Created = v7(), p.pkg, sol003.InstantiationStateNotInstantiated, 1, p.Now()
	if i.ProjectID == "" {
		i.ProjectID = "p"
	}
	if err := p.CreateInstance(context.Background(), &i); err != nil {
		t.Fatal(err)
	}
	return &i
}

var everyone = lcm.Scope{Admin: true}

// accept begins an operation, and enter moves it on through states, the last of them with the instance if one is given.
func (p *plant) accept(t fataler, i *lcm.Instance, operation sol003.LcmOperationType) *lcm.OpOcc {
	op := &lcm.OpOcc{
		ID: v7(), InstanceID: i.ID, ProjectID: i.ProjectID, Operation: operation, State: sol003.LcmOperationStateStarting,
		StartTime: p.Now(), StateEnteredTime: p.Now(), Params: []byte(`{}`), Fence: 1, Seq: 1,
	}
	if err := p.Accept(context.Background(), everyone, op, i.State, 0); err != nil {
		t.Fatal(err)
	}
	return op
}

func (p *plant) enter(t fataler, op *lcm.OpOcc, i *lcm.Instance, states ...sol003.LcmOperationState) {
	tr := &lcm.Transition{Op: op, Node: "n", Instance: i}
	for _, s := range states {
		op.State, op.StateEnteredTime = s, p.Now()
		op.Seq++
		tr.Entered = append(tr.Entered, lcm.StateEntered{ID: v7(), Seq: op.Seq, At: op.StateEnteredTime, Notification: op.Notification()})
	}
	if err := p.Commit(context.Background(), tr); err != nil {
		t.Fatal(err)
	}
}

// subscribe makes a subscription of project p, or of all.
func (p *plant) subscribe(t fataler, sub lcm.Subscription) *lcm.Subscription {
	sub.ID, sub.Created = v7(), p.Now()
	if sub.ProjectID == "" {
		sub.ProjectID = "p"
	}
	if sub.CallbackURI == "" {
		sub.CallbackURI = "http://" + sub.ID
	}
	if err := p.CreateSubscription(context.Background(), &sub); err != nil {
		t.Fatal(err)
	}
	return &sub
}

// told returns what a subscription is to be told, in order, as "type" or "operation state".
func (p *plant) told(t fataler, id string) []string {
	list, err := p.Deliveries(context.Background(), id, []string{}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, d := range list {
		out = append(out, what(t, d.Body))
	}
	return out
}

func what(t fataler, body []byte) string {
	var n sol003.VnfLcmOperationOccurrenceNotification
	if err := json.Unmarshal(body, &n); err != nil {
		t.Fatal(err)
	}
	if n.NotificationType != sol003.NotificationTypeVnfLcmOperationOccurrence {
		return string(n.NotificationType)
	}
	return string(n.Operation) + " " + string(n.OperationState)
}

const (
	creation = string(sol003.NotificationTypeVnfIdentifierCreation)
	deletion = string(sol003.NotificationTypeVnfIdentifierDeletion)
)

// TestFanOut takes one instance through its life under subscriptions of every kind.
func TestFanOut(t *testing.T) {
	p := newPlant(t)
	instance := func(f sol003.VnfInstanceSubscriptionFilter) *sol003.LifecycleChangeNotificationsFilter {
		return &sol003.LifecycleChangeNotificationsFilter{VnfInstanceSubscriptionFilter: &f}
	}
	product := func(provider, product, software string, vnfd ...string) *sol003.LifecycleChangeNotificationsFilter {
		from := sol003.VnfProductsFromProvider{VnfProvider: provider}
		if product != "" {
			from.VnfProducts = []sol003.VnfProduct{{VnfProductName: product}}
			if software != "" {
				from.VnfProducts[0].Versions = []sol003.VnfProductVersions{{VnfSoftwareVersion: software, VnfdVersions: vnfd}}
			}
		}
		return instance(sol003.VnfInstanceSubscriptionFilter{VnfProductsFromProviders: []sol003.VnfProductsFromProvider{{VnfProvider: "other"}, from}})
	}
	all := []string{creation, "INSTANTIATE STARTING", "INSTANTIATE PROCESSING", "INSTANTIATE COMPLETED",
		"MODIFY_INFO PROCESSING", "MODIFY_INFO FAILED_TEMP", "MODIFY_INFO FAILED", deletion}
	cases := []struct {
		name string
		sub  lcm.Subscription
		want []string
	}{
		{"none", lcm.Subscription{}, all},
		{"empty", lcm.Subscription{Filter: &sol003.LifecycleChangeNotificationsFilter{NotificationTypes: []sol003.NotificationType{}, VnfInstanceSubscriptionFilter: &sol003.VnfInstanceSubscriptionFilter{}}}, all},
		{"other project", lcm.Subscription{ProjectID: "q"}, nil},
		{"all projects", lcm.Subscription{ProjectID: "q", AllProjects: true}, all},
		{"creation", lcm.Subscription{Filter: &sol003.LifecycleChangeNotificationsFilter{NotificationTypes: []sol003.NotificationType{sol003.NotificationTypeVnfIdentifierCreation}}}, all[:1]},
		{"identifiers", lcm.Subscription{Filter: &sol003.LifecycleChangeNotificationsFilter{NotificationTypes: []sol003.NotificationType{sol003.NotificationTypeVnfIdentifierCreation, sol003.NotificationTypeVnfIdentifierDeletion}}}, []string{creation, deletion}},
		{"op occs", lcm.Subscription{Filter: &sol003.LifecycleChangeNotificationsFilter{NotificationTypes: []sol003.NotificationType{sol003.NotificationTypeVnfLcmOperationOccurrence}}}, all[1:7]},
		{"operation", lcm.Subscription{Filter: &sol003.LifecycleChangeNotificationsFilter{OperationTypes: []sol003.LcmOperationType{sol003.LcmOperationTypeInstantiate, sol003.LcmOperationTypeHeal}}}, append(slices.Clone(all[:4]), deletion)},
		{"state", lcm.Subscription{Filter: &sol003.LifecycleChangeNotificationsFilter{OperationStates: []sol003.LcmOperationState{sol003.LcmOperationStateCompleted, sol003.LcmOperationStateFailed}}}, []string{creation, all[3], all[6], deletion}},
		{"operation and state", lcm.Subscription{Filter: &sol003.LifecycleChangeNotificationsFilter{
			NotificationTypes: []sol003.NotificationType{sol003.NotificationTypeVnfLcmOperationOccurrence},
			OperationTypes:    []sol003.LcmOperationType{sol003.LcmOperationTypeModifyInfo},
			OperationStates:   []sol003.LcmOperationState{sol003.LcmOperationStateProcessing},
		}}, all[4:5]},
		{"vnfd", lcm.Subscription{Filter: instance(sol003.VnfInstanceSubscriptionFilter{VnfdIds: []string{"x", "d"}})}, all},
		{"other vnfd", lcm.Subscription{Filter: instance(sol003.VnfInstanceSubscriptionFilter{VnfdIds: []string{"x"}})}, nil},
		{"name", lcm.Subscription{Filter: instance(sol003.VnfInstanceSubscriptionFilter{VnfInstanceNames: []string{"one"}})}, all[:6]},
		{"new name", lcm.Subscription{Filter: instance(sol003.VnfInstanceSubscriptionFilter{VnfInstanceNames: []string{"two"}})}, all[6:]},
		{"other id", lcm.Subscription{Filter: instance(sol003.VnfInstanceSubscriptionFilter{VnfInstanceIds: []string{uuid.NewString(), "no uuid"}})}, nil},
		{"provider", lcm.Subscription{Filter: product("Company", "", "")}, all},
		{"product", lcm.Subscription{Filter: product("Company", "VNF", "")}, all},
		{"other product", lcm.Subscription{Filter: product("Company", "VNF2", "")}, nil},
		{"product of another", lcm.Subscription{Filter: product("Companies", "VNF", "")}, nil},
		{"version", lcm.Subscription{Filter: product("Company", "VNF", "1.0")}, all},
		{"other version", lcm.Subscription{Filter: product("Company", "VNF", "1.1")}, nil},
		{"vnfd version", lcm.Subscription{Filter: product("Company", "VNF", "1.0", "3", "2")}, all},
		{"other vnfd version", lcm.Subscription{Filter: product("Company", "VNF", "1.0", "3")}, nil},
		{"vnfd and other name", lcm.Subscription{Filter: instance(sol003.VnfInstanceSubscriptionFilter{VnfdIds: []string{"d"}, VnfInstanceNames: []string{"x"}})}, nil},
	}
	ids := map[string]string{}
	for _, c := range cases {
		ids[c.name] = p.subscribe(t, c.sub).ID
	}
	i := p.create(t, lcm.Instance{Name: "one", VnfdID: "d", Provider: "Company", ProductName: "VNF", SoftwareVersion: "1.0", VnfdVersion: "2"})
	late := p.subscribe(t, lcm.Subscription{Filter: instance(sol003.VnfInstanceSubscriptionFilter{VnfInstanceIds: []string{i.ID}})})
	p.create(t, lcm.Instance{Name: "one", VnfdID: "d", ProjectID: "elsewhere", Provider: "Company"})

	op := p.accept(t, i, sol003.LcmOperationTypeInstantiate)
	p.enter(t, op, nil, sol003.LcmOperationStateProcessing, sol003.LcmOperationStateCompleted)
	op = &lcm.OpOcc{ID: v7(), InstanceID: i.ID, ProjectID: "p", Operation: sol003.LcmOperationTypeModifyInfo, State: sol003.LcmOperationStateProcessing,
		StartTime: p.Now(), StateEnteredTime: p.Now(), Params: []byte(`{}`), Fence: 1, Seq: 1}
	if err := p.Accept(context.Background(), everyone, op, i.State, 0); err != nil {
		t.Fatal(err)
	}
	p.enter(t, op, nil, sol003.LcmOperationStateFailedTemp)
	i.Name = "two"
	if _, err := p.Pool.Exec(context.Background(), `UPDATE vnf_instances SET body = replace(body::text, '"one"', '"two"')::json WHERE id = $1`, i.ID); err != nil {
		t.Fatal(err)
	}
	err := p.Move(context.Background(), everyone, op.ID, func(op *lcm.OpOcc) (lcm.StateEntered, error) {
		op.State, op.StateEnteredTime = sol003.LcmOperationStateFailed, p.Now()
		op.Seq++
		return lcm.StateEntered{ID: v7(), Seq: op.Seq, At: op.StateEnteredTime, Notification: op.Notification()}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.DeleteInstance(context.Background(), everyone, i.ID, 0); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if diff := cmp.Diff(append([]string{}, c.want...), p.toldOf(t, ids[c.name], i.ID)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	if diff := cmp.Diff(all[1:], p.told(t, late.ID)); diff != "" {
		t.Errorf("late: %s", diff)
	}
}

// toldOf is told about one instance only.
func (p *plant) toldOf(t fataler, id, instance string) []string {
	list, err := p.Deliveries(context.Background(), id, []string{}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, d := range list {
		if d.InstanceID == instance {
			out = append(out, what(t, d.Body))
		}
	}
	return out
}

// TestModifiedName: the notification of a transition that changes the instance goes by what the instance is then.
func TestModifiedName(t *testing.T) {
	p := newPlant(t)
	named := func(name string) string {
		return p.subscribe(t, lcm.Subscription{Filter: &sol003.LifecycleChangeNotificationsFilter{
			VnfInstanceSubscriptionFilter: &sol003.VnfInstanceSubscriptionFilter{VnfInstanceNames: []string{name}},
		}}).ID
	}
	one, two := named("one"), named("two")
	i := p.create(t, lcm.Instance{Name: "one", VnfdID: "d"})
	op := p.accept(t, i, sol003.LcmOperationTypeModifyInfo)
	i.Name = "two"
	p.enter(t, op, i, sol003.LcmOperationStateCompleted)
	if diff := cmp.Diff([]string{creation, "MODIFY_INFO STARTING"}, p.told(t, one)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"MODIFY_INFO COMPLETED"}, p.told(t, two)); diff != "" {
		t.Error(diff)
	}
}

// matches is the standard's rule in plain words, for the property test (SOL003 v2.6.1 §5.5.3.12, §4.4.1.5).
func matches(f *sol003.LifecycleChangeNotificationsFilter, i *lcm.Instance, n string) bool {
	operation, state, isOp := strings.Cut(n, " ")
	kind := string(sol003.NotificationTypeVnfLcmOperationOccurrence)
	if !isOp {
		kind = n
	}
	if len(f.NotificationTypes) > 0 && !slices.Contains(f.NotificationTypes, sol003.NotificationType(kind)) {
		return false
	}
	if isOp && len(f.OperationTypes) > 0 && !slices.Contains(f.OperationTypes, sol003.LcmOperationType(operation)) {
		return false
	}
	if isOp && len(f.OperationStates) > 0 && !slices.Contains(f.OperationStates, sol003.LcmOperationState(state)) {
		return false
	}
	v := f.VnfInstanceSubscriptionFilter
	if v == nil {
		return true
	}
	in := func(list []string, s string) bool { return len(list) == 0 || slices.Contains(list, s) }
	if !in(v.VnfdIds, i.VnfdID) || !in(v.VnfInstanceIds, i.ID) || !in(v.VnfInstanceNames, i.Name) {
		return false
	}
	if len(v.VnfProductsFromProviders) == 0 {
		return true
	}
	for _, from := range v.VnfProductsFromProviders {
		if from.VnfProvider != i.Provider {
			continue
		}
		if len(from.VnfProducts) == 0 {
			return true
		}
		for _, product := range from.VnfProducts {
			if product.VnfProductName != i.ProductName {
				continue
			}
			if len(product.Versions) == 0 {
				return true
			}
			for _, version := range product.Versions {
				if version.VnfSoftwareVersion == i.SoftwareVersion && in(version.VnfdVersions, i.VnfdVersion) {
					return true
				}
			}
		}
	}
	return false
}

// TestFanOutProperty: the database matches as the plain words do, for random filters and instances.
func TestFanOutProperty(t *testing.T) {
	p := newPlant(t)
	ctx := context.Background()
	word := rapid.SampledFrom([]string{"a", "b", "ü \"'{},\\"})
	words := rapid.SliceOfN(word, 0, 2)
	version := rapid.Custom(func(t *rapid.T) sol003.VnfProductVersions {
		return sol003.VnfProductVersions{VnfSoftwareVersion: word.Draw(t, "software"), VnfdVersions: words.Draw(t, "vnfd")}
	})
	product := rapid.Custom(func(t *rapid.T) sol003.VnfProduct {
		return sol003.VnfProduct{VnfProductName: word.Draw(t, "product"), Versions: rapid.SliceOfN(version, 0, 2).Draw(t, "versions")}
	})
	provider := rapid.Custom(func(t *rapid.T) sol003.VnfProductsFromProvider {
		return sol003.VnfProductsFromProvider{VnfProvider: word.Draw(t, "provider"), VnfProducts: rapid.SliceOfN(product, 0, 2).Draw(t, "products")}
	})
	types := rapid.SliceOfN(rapid.SampledFrom([]sol003.NotificationType{
		sol003.NotificationTypeVnfLcmOperationOccurrence, sol003.NotificationTypeVnfIdentifierCreation, sol003.NotificationTypeVnfIdentifierDeletion,
	}), 0, 2)
	operations := rapid.SampledFrom([]sol003.LcmOperationType{sol003.LcmOperationTypeInstantiate, sol003.LcmOperationTypeScale, sol003.LcmOperationTypeHeal})
	states := []sol003.LcmOperationState{sol003.LcmOperationStateStarting, sol003.LcmOperationStateProcessing, sol003.LcmOperationStateCompleted}
	rapid.Check(t, func(rt *rapid.T) {
		if _, err := p.Pool.Exec(ctx, `TRUNCATE subscriptions, deliveries`); err != nil {
			rt.Fatal(err)
		}
		var subs []*lcm.Subscription
		for range rapid.IntRange(1, 5).Draw(rt, "subscriptions") {
			f := &sol003.LifecycleChangeNotificationsFilter{
				NotificationTypes: types.Draw(rt, "types"), OperationTypes: rapid.SliceOfN(operations, 0, 2).Draw(rt, "operations"),
				OperationStates: rapid.SliceOfN(rapid.SampledFrom(states), 0, 2).Draw(rt, "states"),
			}
			if rapid.Bool().Draw(rt, "by instance") {
				f.VnfInstanceSubscriptionFilter = &sol003.VnfInstanceSubscriptionFilter{
					VnfdIds: words.Draw(rt, "vnfds"), VnfInstanceNames: words.Draw(rt, "names"),
					VnfProductsFromProviders: rapid.SliceOfN(provider, 0, 2).Draw(rt, "providers"),
				}
			}
			subs = append(subs, p.subscribe(rt, lcm.Subscription{Filter: f}))
		}
		i := p.create(rt, lcm.Instance{
			Name: word.Draw(rt, "name"), VnfdID: word.Draw(rt, "vnfd"), Provider: word.Draw(rt, "provider"), ProductName: word.Draw(rt, "product"),
			SoftwareVersion: word.Draw(rt, "software"), VnfdVersion: word.Draw(rt, "version"),
		})
		happened := []string{creation}
		for range rapid.IntRange(0, 2).Draw(rt, "operations") {
			operation := operations.Draw(rt, "operation")
			op := p.accept(rt, i, operation)
			if rapid.Bool().Draw(rt, "at once") {
				p.enter(rt, op, nil, states[1:]...)
			} else {
				p.enter(rt, op, nil, states[1])
				p.enter(rt, op, i, states[2])
			}
			for _, s := range states {
				happened = append(happened, string(operation)+" "+string(s))
			}
		}
		if err := p.DeleteInstance(ctx, everyone, i.ID, 0); err != nil {
			rt.Fatal(err)
		}
		happened = append(happened, deletion)
		for _, s := range subs {
			want := []string{}
			for _, n := range happened {
				if matches(s.Filter, i, n) {
					want = append(want, n)
				}
			}
			if diff := cmp.Diff(want, p.told(rt, s.ID)); diff != "" {
				rt.Fatalf("%+v: %s", s.Filter, diff)
			}
		}
	})
}

func TestSubscriptions(t *testing.T) {
	p := newPlant(t)
	ctx := context.Background()
	auth := &sol003.SubscriptionAuthentication{AuthType: []sol003.SubscriptionAuthType{sol003.SubscriptionAuthTypeBasic}}
	auth.ParamsBasic.UserName, auth.ParamsBasic.Password = "joe", "geheim"
	filter := func(types ...sol003.NotificationType) *sol003.LifecycleChangeNotificationsFilter {
		return &sol003.LifecycleChangeNotificationsFilter{NotificationTypes: types}
	}
	a, b := sol003.NotificationTypeVnfIdentifierCreation, sol003.NotificationTypeVnfIdentifierDeletion
	one := p.subscribe(t, lcm.Subscription{CallbackURI: "http://a/", Filter: filter(a, b), Auth: auth})
	same := *one
	same.ID, same.Filter = v7(), filter(b, a, b)
	var there *lcm.SubscribedError
	if err := p.CreateSubscription(ctx, &same); !errors.As(err, &there) || there.ID != one.ID {
		t.Errorf("the same again: %v", err)
	}
	if id, err := p.SameSubscription(ctx, &same); id != one.ID || err != nil {
		t.Errorf("same: %q %v", id, err)
	}
	p.subscribe(t, lcm.Subscription{CallbackURI: "http://a/", Filter: filter(a)})
	p.subscribe(t, lcm.Subscription{CallbackURI: "http://b/", Filter: filter(a, b)})
	p.subscribe(t, lcm.Subscription{CallbackURI: "http://a/", Filter: filter(a, b), ProjectID: "q"})
	p.subscribe(t, lcm.Subscription{CallbackURI: "http://a/", Filter: filter(a, b), AllProjects: true})
	p.subscribe(t, lcm.Subscription{CallbackURI: "http://a/"})

	var row string
	if err := p.Pool.QueryRow(ctx, `SELECT s::text FROM subscriptions s WHERE id = $1`, one.ID).Scan(&row); err != nil || strings.Contains(row, "geheim") || strings.Contains(row, "joe") {
		t.Errorf("the row tells a secret: %s %v", row, err)
	}
	got, err := p.Subscription(ctx, one.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(one, got); diff != "" {
		t.Error(diff)
	}
	mine, other := lcm.Scope{ProjectID: "p"}, lcm.Scope{ProjectID: "q"}
	body, err := p.SubscriptionBody(ctx, mine, one.ID)
	if err != nil || strings.Contains(string(body.JSON), "joe") || body.Version != 1 {
		t.Errorf("%s %v", body.JSON, err)
	}
	for _, id := range []string{one.ID, uuid.NewString(), "zz"} {
		if _, err := p.SubscriptionBody(ctx, other, id); !lcm.Is(err, lcm.KindNotFound) || !strings.Contains(err.Error(), "Can not find requested vnf lcm subscriptions: "+id) {
			t.Errorf("%v", err)
		}
		if err := p.DeleteSubscription(ctx, other, id); !lcm.Is(err, lcm.KindNotFound) {
			t.Errorf("%v", err)
		}
	}
	count := func(s lcm.Scope, q lcm.Query) (n int) {
		for _, err := range p.Subscriptions(ctx, s, q) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		return n
	}
	if n := count(mine, lcm.Query{}); n != 5 {
		t.Errorf("%d subscriptions", n)
	}
	if n := count(everyone, lcm.Query{}); n != 6 {
		t.Errorf("%d subscriptions of all", n)
	}
	if n := count(mine, lcm.Query{Filter: []lcm.Condition{{Op: "eq", Path: []string{"callbackUri"}, Values: []string{"http://b/"}}}}); n != 1 {
		t.Errorf("%d of one callback", n)
	}
	if n := count(mine, lcm.Query{Filter: []lcm.Condition{{Op: "eq", Path: []string{"filter", "notificationTypes"}, Values: []string{string(b)}}}}); n != 3 {
		t.Errorf("%d of one type", n)
	}
	p.create(t, lcm.Instance{Name: "i"})
	if n := len(p.told(t, one.ID)); n != 1 {
		t.Errorf("%d to be told", n)
	}
	if err := p.DeleteSubscription(ctx, mine, one.ID); err != nil {
		t.Error(err)
	}
	if n := len(p.told(t, one.ID)); n != 0 {
		t.Errorf("%d to be told when it is gone", n)
	}
	if _, err := p.Subscription(ctx, one.ID); !lcm.Is(err, lcm.KindNotFound) {
		t.Error(err)
	}
}

// TestDeliverySessions: what one session serves no other does, until it is released or its session ends.
func TestDeliverySessions(t *testing.T) {
	p := newPlant(t)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	open := func() lcm.DeliverySession {
		s, err := p.OpenDeliveries(ctx)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close(context.Background()) })
		return s
	}
	pending := func(s lcm.DeliverySession) []string {
		ids, err := s.Pending(ctx, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(ids)
		return ids
	}
	first, second := p.subscribe(t, lcm.Subscription{}).ID, p.subscribe(t, lcm.Subscription{ProjectID: "q"}).ID
	p.create(t, lcm.Instance{Name: "i"})
	a := open()
	if diff := cmp.Diff([]string{first}, pending(a)); diff != "" {
		t.Fatal(diff)
	}
	b := open()
	if got := pending(b); len(got) != 0 {
		t.Fatalf("two serve %v", got)
	}
	// Told of new ones after the commit, well before the next look in an hour; always the same one of the two.
	type served struct {
		by lcm.DeliverySession
		id string
	}
	all := make(chan served, 100)
	run, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for _, s := range []lcm.DeliverySession{a, b} {
		wg.Go(func() {
			for {
				ids, err := s.Pending(run, time.Hour)
				if err != nil {
					return
				}
				for _, id := range ids {
					all <- served{s, id}
				}
			}
		})
	}
	var owner lcm.DeliverySession
	for range 3 {
		p.create(t, lcm.Instance{Name: "i", ProjectID: "q"})
		for {
			var got served
			select {
			case got = <-all:
			case <-ctx.Done():
				t.Fatal("nobody was told")
			}
			switch {
			case got.id == first && got.by != a, got.id == second && owner != nil && got.by != owner:
				t.Fatal("two serve one subscription")
			case got.id == first:
				continue
			}
			owner = got.by
			break
		}
	}
	stop()
	wg.Wait()
	a.Close(ctx)
	b.Close(ctx)
	c := open()
	want := []string{first, second}
	slices.Sort(want)
	pendingSoon(ctx, t, c, want)
	if err := c.Release(ctx, first); err != nil {
		t.Fatal(err)
	}
	pendingSoon(ctx, t, open(), []string{first})
}

// pendingSoon asks with short looks until the session serves what is wanted.
func pendingSoon(ctx context.Context, t *testing.T, s lcm.DeliverySession, want []string) []string {
	t.Helper()
	for {
		ids, err := s.Pending(ctx, 10*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(ids)
		if slices.Equal(ids, want) {
			return ids
		}
	}
}

func TestPrune(t *testing.T) {
	p := newPlant(t)
	ctx := context.Background()
	sub := p.subscribe(t, lcm.Subscription{Filter: &sol003.LifecycleChangeNotificationsFilter{
		NotificationTypes: []sol003.NotificationType{sol003.NotificationTypeVnfIdentifierCreation},
	}})
	i := p.create(t, lcm.Instance{Name: "i"})
	op := p.accept(t, i, sol003.LcmOperationTypeInstantiate)
	p.enter(t, op, nil, sol003.LcmOperationStateProcessing, sol003.LcmOperationStateCompleted)
	p.accept(t, i, sol003.LcmOperationTypeScale)
	gone := p.subscribe(t, lcm.Subscription{})
	p.create(t, lcm.Instance{Name: "j", ProjectID: "p"})
	// A subscription that went while something was put down for it.
	if _, err := p.Pool.Exec(ctx, `DELETE FROM subscriptions WHERE id = $1`, gone.ID); err != nil {
		t.Fatal(err)
	}
	left := func() (n int) {
		if err := p.Pool.QueryRow(ctx, `SELECT count(*) FROM notifications`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n, err := p.Prune(ctx, time.Now().Add(-time.Hour)); n != 0 || err != nil || left() != 6 {
		t.Errorf("%d pruned, %d left: %v", n, left(), err)
	}
	if got := p.told(t, gone.ID); len(got) != 0 {
		t.Errorf("%v is left for nobody", got)
	}
	// Left are two creations to be told and the active op occ's.
	if n, err := p.Prune(ctx, time.Now().Add(time.Hour)); n != 3 || err != nil || left() != 3 {
		t.Errorf("%d pruned, %d left: %v", n, left(), err)
	}
	list, err := p.Deliveries(ctx, sub.ID, []string{}, 10)
	if err != nil || len(list) != 2 {
		t.Fatalf("%v %v", list, err)
	}
	if n, err := p.Delivered(ctx, sub.ID, []int64{list[0].Seq, list[1].Seq, 1 << 40}); n != 2 || err != nil {
		t.Errorf("%d %v", n, err)
	}
	if n, err := p.Prune(ctx, time.Now().Add(time.Hour)); n != 2 || err != nil {
		t.Errorf("%d pruned: %v", n, err)
	}
}

func TestDeliveryRecords(t *testing.T) {
	p := newPlant(t)
	ctx := context.Background()
	sub := p.subscribe(t, lcm.Subscription{})
	var instances []string
	for n := range 3 {
		i := p.create(t, lcm.Instance{Name: fmt.Sprint(n)})
		p.accept(t, i, sol003.LcmOperationTypeInstantiate)
		instances = append(instances, i.ID)
	}
	read := func(pass []string, limit int) []lcm.Delivery {
		list, err := p.Deliveries(ctx, sub.ID, pass, limit)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if list := read([]string{instances[0], instances[2]}, 5); len(list) != 2 || list[0].InstanceID != instances[1] || list[0].OpOccID != "" || list[1].OpOccID == "" || !list[0].NextAt.IsZero() {
		t.Errorf("%+v", list)
	}
	if list := read([]string{}, 4); len(list) != 4 {
		t.Errorf("%+v", list)
	}
	first := read([]string{}, 1)[0]
	next := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	if err := p.Postpone(ctx, sub.ID, first.Seq, 3, next); err != nil {
		t.Fatal(err)
	}
	if got := read([]string{}, 1)[0]; got.Attempts != 3 || !got.NextAt.Equal(next) {
		t.Errorf("%+v", got)
	}
	if err := p.Resume(ctx, sub.ID); err != nil {
		t.Fatal(err)
	}
	if got := read([]string{}, 1)[0]; got.Attempts != 3 || !got.NextAt.IsZero() {
		t.Errorf("%+v", got)
	}
	if n, err := p.DropOld(ctx, sub.ID, time.Now().Add(-time.Hour)); n != 0 || err != nil {
		t.Errorf("%d %v", n, err)
	}
	if n, err := p.DropOld(ctx, sub.ID, time.Now().Add(time.Hour)); n != 6 || err != nil {
		t.Errorf("%d %v", n, err)
	}
}
