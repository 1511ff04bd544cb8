package openstack

import (
	"context"
	"net/http"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/vimsim"
	"github.com/seed-f1a0ccf1/vnfm/test/harness"
)

// fault is something that goes wrong in an OpenStack.
type fault struct {
	name string
	// lasts tells that it would be waited for for long.
	lasts bool
	// is are the simulator's faults that make it.
	is []vimsim.Fault
	// begin does what else makes it, and returns what ends that.
	begin func(l *life) (end func())
	// comes is what is to come of it, by operation.
	comes map[string]outcome
}

// strike makes the fault happen; what is returned takes it away.
func (f *fault) strike(l *life) (end func()) {
	l.Helper()
	var ids []string
	for _, s := range f.is {
		if err := vimsim.CheckFault(s); err != nil {
			l.Fatal(err)
		}
		ids = append(ids, l.sim.Cloud.AddFault(s))
	}
	more := func() {}
	if f.begin != nil {
		more = f.begin(l)
	}
	return func() {
		for _, id := range ids {
			l.sim.Cloud.RemoveFault(id)
		}
		more()
	}
}

const proxyPage = `<html>
<head><title>502 Bad Gateway</title><style>body { color: red }</style></head>
<body bgcolor="white">
<center><h1>502 Bad Gateway</h1></center>
<hr><center>nginx/1.18.0 (Ubuntu)</center>
<script>alert("x")</script>
</body>
</html>
`

// portalPage is what somebody in between answers with status 200.
const portalPage = `<!DOCTYPE html>
<html><head><title>Welcome</title></head><body><p>Welcome to the guests' network</p></body></html>`

const (
	writeStack   = `^(POST .*/stacks|PUT .*/stacks/[^/]+/[^/]+)$`
	changeStack  = `^((POST|PUT|PATCH|DELETE) .*/stacks(/.*)?)$`
	minutes      = vimsim.Duration(5 * time.Minute)
	server       = "OS::Nova::Server"
	halfASecond  = vimsim.Duration(500 * time.Millisecond)
	templateSaid = "Property error: resources.VDU2.properties.flavor: Error validating value 'm1.none'."
)

// expireTokens has Keystone forget all tokens, again and again until it is ended.
func expireTokens(l *life) (end func()) {
	ctx, cancel := context.WithCancel(l.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(150 * time.Millisecond)
		defer tick.Stop()
		for {
			l.sim.Cloud.ExpireTokens()
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return func() { cancel(); <-done }
}

// inTheMiddle returns what has more befall the cloud once something has been changed in it.
func inTheMiddle(more func(l *life)) func(l *life) (end func()) {
	return func(l *life) (end func()) {
		ctx, cancel := context.WithCancel(l.ctx)
		done := make(chan struct{})
		changes := func() (n int) {
			for _, e := range l.sim.Cloud.Journal() {
				if e.Service == "heat" || e.Service == "nova" {
					n++
				}
			}
			return n
		}
		before := changes()
		go func() {
			defer close(done)
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for changes() == before {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
			}
			more(l)
		}()
		return func() {
			cancel()
			<-done
			l.sim.Cloud.RemoveFault("") // also what has come later
		}
	}
}

// cloudClient returns a client of a service of the simulated cloud that is logged in.
func cloudClient(l *life, service string) *harness.Client {
	l.Helper()
	c := harness.Cluster{Sim: l.sim}
	token, err := c.Token(l.ctx)
	l.ok(err)
	api := harness.NewClient(l.sim.URL + service)
	api.Token = token
	return api
}

// rename gives networks other names: whoever asks for them by name does not find them.
func rename(l *life) (end func()) {
	l.Helper()
	names := map[string]string{}
	for _, n := range l.sim.Cloud.State().Networks {
		if name := n["name"].(string); name == firstNet || name == secondNet {
			names[n["id"].(string)] = name
		}
	}
	call := func(suffix string) {
		neutron := cloudClient(l, "/network/v2.0")
		for id, name := range names {
			to := map[string]any{"network": map[string]any{"name": name + suffix}}
			_, err := neutron.Call(l.ctx, http.MethodPut, "/networks/"+id, to, nil)
			l.ok(err)
		}
	}
	call("-of-old")
	return func() { call("") }
}

// takeAddresses gives the addresses that VDU2 is to have to ports of others. That which it has cannot be taken: then it is as
// if it were, as soon as it is asked for anew.
func takeAddresses(l *life) (end func()) {
	l.Helper()
	neutron := cloudClient(l, "/network/v2.0")
	var ports, ids []string
	for _, n := range l.sim.Cloud.State().Networks {
		for _, a := range []struct{ net, address string }{{firstNet, firstAddress}, {secondNet, secondAddress}} {
			if n["name"] != a.net {
				continue
			}
			var made struct {
				Port struct{ ID string }
			}
			_, err := neutron.Call(l.ctx, http.MethodPost, "/ports", map[string]any{"port": map[string]any{
				"network_id": n["id"], "fixed_ips": []any{map[string]any{"ip_address": a.address}},
			}}, &made)
			if err == nil {
				ports = append(ports, made.Port.ID)
				continue
			}
			ids = append(ids, l.sim.Cloud.AddFault(vimsim.Fault{
				ResourceType: "OS::Neutron::Port", Name: "VDU2_CP1", Action: "create", Effect: vimsim.EffectFail,
				Reason: "IP address " + a.address + " already allocated in subnet",
			}))
		}
	}
	return func() {
		for _, id := range ids {
			l.sim.Cloud.RemoveFault(id)
		}
		neutron := cloudClient(l, "/network/v2.0")
		for _, id := range ports {
			_, err := neutron.Call(l.ctx, http.MethodDelete, "/ports/"+id, nil, nil)
			l.ok(err)
		}
	}
}

// breakOne puts a server of the instance into ERROR.
func breakOne(l *life) (end func()) {
	l.Helper()
	nova := cloudClient(l, "/compute/v2.1")
	for _, s := range l.sim.Cloud.State().Servers {
		if s["name"] == "VDU1" {
			l.broken = s["id"].(string)
			to := map[string]any{"os-resetState": map[string]any{"state": "error"}}
			_, err := nova.Call(l.ctx, http.MethodPost, "/servers/"+l.broken+"/action", to, nil)
			l.ok(err)
			break
		}
	}
	return func() {}
}
