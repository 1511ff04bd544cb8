package conformance

import (
	"strings"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

// accepted is a case of an operation that is accepted and succeeds; check looks at the op occ and the VNF after it.
func accepted(route, name, body string, vnf func(x *exam) string, check func(x *exam, op sol003.VnfLcmOpOcc, i sol003.VnfInstance)) trial {
	return trial{duty{route, "POST", 202}, name, func(x *exam) *answer {
		id := vnf(x)
		a := x.ask("POST", request{path: at(route, id), body: strings.ReplaceAll(body, "{vim}", x.open.vimID), stretched: strings.HasPrefix(name, "as ")})
		if a.status != 202 {
			return a
		}
		op := x.in(x.open, x.opOccOf(a), "COMPLETED")
		if op.VnfInstanceId != id || op.IsAutomaticInvocation || op.IsCancelPending || op.Error != nil || op.OperationParams == nil {
			x.t.Errorf("op occ %+v", op)
		}
		if check != nil {
			check(x, op, x.read(x.open, id))
		}
		return a
	}}
}

func fresh(x *exam) string  { return x.created(x.open) }
func there(x *exam) string  { return x.instantiated(x.open) }
func plain(x *exam) string  { return x.instantiatedPlain(x.open) }
func inUse(x *exam) string  { id, _ := x.occupied(x.open); return id }
func fallen(x *exam) string { id, _ := x.fell(x.open, "create"); return id }

// scaledTo checks the scale level of the workers.
func scaledTo(level int) func(*exam, sol003.VnfLcmOpOcc, sol003.VnfInstance) {
	return func(x *exam, op sol003.VnfLcmOpOcc, i sol003.VnfInstance) {
		for _, s := range i.InstantiatedVnfInfo.ScaleStatus {
			if s.AspectId == "worker_instance" && s.ScaleLevel == level {
				if op.ResourceChanges == nil || len(op.ResourceChanges.AffectedVnfcs) == 0 {
					x.t.Errorf("resourceChanges %+v", op.ResourceChanges)
				}
				return
			}
		}
		x.t.Errorf("scaleStatus %+v", i.InstantiatedVnfInfo.ScaleStatus)
	}
}

// taskCases are those of the task resources of a VNF instance (§5.4.4 to §5.4.11).
func taskCases() []trial {
	running := func(x *exam, _ sol003.VnfLcmOpOcc, i sol003.VnfInstance) {
		if i.InstantiationState != "INSTANTIATED" || i.InstantiatedVnfInfo.VnfState != "STARTED" {
			x.t.Errorf("%+v", i)
		}
	}
	wide := func(x *exam) string {
		id := x.instantiated(x.open)
		x.in(x.open, x.started(x.open, scale, id, `{"type":"SCALE_OUT","aspectId":"worker_instance"}`), "COMPLETED")
		return id
	}
	stopped := func(x *exam) string {
		id := x.instantiated(x.open)
		x.in(x.open, x.started(x.open, operate, id, `{"changeStateTo":"STOPPED"}`), "COMPLETED")
		return id
	}
	out := []trial{
		accepted(instantiate, "on a VIM", `{"flavourId":"simple","vimConnectionInfo":[{"id":"v","vimId":"{vim}","vimType":"fake"}]}`, fresh, running),
		accepted(instantiate, "on the default VIM", `{"flavourId":"complex"}`, fresh, running),
		accepted(instantiate, "at a level", `{"flavourId":"simple","instantiationLevelId":"instantiation_level_2"}`, fresh, func(x *exam, op sol003.VnfLcmOpOcc, i sol003.VnfInstance) {
			scaledTo(2)(x, op, i)
			if n := len(i.InstantiatedVnfInfo.VnfcResourceInfo); n != 7 && n != len(op.ResourceChanges.AffectedVnfcs) {
				x.t.Errorf("%d VNFCs, %d of them added", n, len(op.ResourceChanges.AffectedVnfcs))
			}
		}),
		accepted(instantiate, "again after it was terminated", `{"flavourId":"simple"}`, func(x *exam) string {
			id := x.instantiated(x.open)
			x.in(x.open, x.started(x.open, terminate, id, `{"terminationType":"FORCEFUL"}`), "COMPLETED")
			return id
		}, running),
		accepted(scale, "out", `{"type":"SCALE_OUT","aspectId":"worker_instance"}`, there, scaledTo(1)),
		accepted(scale, "out by two", `{"type":"SCALE_OUT","aspectId":"worker_instance","numberOfSteps":2}`, there, scaledTo(2)),
		accepted(scale, "as guides write it", `{"type":"SCALE_OUT","aspectId":"worker_instance","numberOfSteps":"2"}`, there, scaledTo(2)),
		accepted(scale, "in", `{"type":"SCALE_IN","aspectId":"worker_instance","numberOfSteps":1}`, wide, scaledTo(0)),
		accepted(scaleToLevel, "to a level by name", `{"instantiationLevelId":"instantiation_level_2"}`, there, scaledTo(2)),
		accepted(scaleToLevel, "to the levels of aspects", `{"scaleInfo":[{"aspectId":"worker_instance","scaleLevel":1}]}`, there, scaledTo(1)),
		accepted(changeFlavour, "to the other", `{"newFlavourId":"complex"}`, there, func(x *exam, _ sol003.VnfLcmOpOcc, i sol003.VnfInstance) {
			if i.InstantiatedVnfInfo.FlavourId != "complex" {
				x.t.Errorf("flavourId %s", i.InstantiatedVnfInfo.FlavourId)
			}
		}),
		accepted(heal, "the whole VNF", `{"cause":"it does not answer"}`, there, running),
		accepted(heal, "with nothing", `{}`, there, running),
		healed("of some VNFCs", `["%s"]`, false),
		healed("as guides write it", `"%s"`, true),
		accepted(operate, "stop", `{"changeStateTo":"STOPPED","stopType":"FORCEFUL"}`, there, func(x *exam, _ sol003.VnfLcmOpOcc, i sol003.VnfInstance) {
			if i.InstantiatedVnfInfo.VnfState != "STOPPED" {
				x.t.Errorf("vnfState %s", i.InstantiatedVnfInfo.VnfState)
			}
		}),
		accepted(operate, "stop, after a while", `{"changeStateTo":"STOPPED","stopType":"GRACEFUL","gracefulStopTimeout":1}`, there, nil),
		accepted(operate, "start", `{"changeStateTo":"STARTED"}`, stopped, running),
		accepted(changeExtConn, "to another network", connect("net1"), there, func(x *exam, op sol003.VnfLcmOpOcc, i sol003.VnfInstance) {
			if len(i.InstantiatedVnfInfo.ExtVirtualLinkInfo) == 0 || len(op.ChangedExtConnectivity) == 0 {
				x.t.Errorf("extVirtualLinkInfo %+v, changedExtConnectivity %+v", i.InstantiatedVnfInfo.ExtVirtualLinkInfo, op.ChangedExtConnectivity)
			}
		}),
		accepted(terminate, "at once", `{"terminationType":"FORCEFUL"}`, there, func(x *exam, _ sol003.VnfLcmOpOcc, i sol003.VnfInstance) {
			if i.InstantiationState != "NOT_INSTANTIATED" || i.InstantiatedVnfInfo != nil || len(i.VimConnectionInfo) > 0 {
				x.t.Errorf("%+v", i)
			}
		}),
		accepted(terminate, "after a while", `{"terminationType":"GRACEFUL","gracefulTerminationTimeout":1}`, there, nil),
		accepted(terminate, "at once, with a timeout", `{"terminationType":"FORCEFUL","gracefulTerminationTimeout":600}`, there, nil),
		{duty{terminate, "POST", 202}, "Idempotency-Key comes again", func(x *exam) *answer {
			q := request{path: at(terminate, there(x)), body: `{"terminationType":"FORCEFUL"}`, headers: []string{"Idempotency-Key: terminate-1"}}
			first := x.opOccOf(x.want(202, "POST", q))
			x.in(x.open, first, "COMPLETED")
			a := x.ask("POST", q)
			if again := x.opOccOf(a); again != first {
				x.t.Errorf("op occ %s, then %s", first, again)
			}
			return a
		}},
	}
	for _, c := range []struct {
		route, name string
		status      int
		vnf         func(*exam) string
		body        string // the sample when empty
	}{
		{instantiate, "INSTANTIATED", 409, there, ""},
		{instantiate, "an operation goes on", 409, inUse, ""},
		{instantiate, "an operation is in FAILED_TEMP", 409, fallen, ""},
		{instantiate, "no such flavour", 400, fresh, `{"flavourId":"none"}`},
		{instantiate, "no such level", 400, fresh, `{"flavourId":"simple","instantiationLevelId":"none"}`},
		{instantiate, "no such VIM", 400, fresh, `{"flavourId":"simple","vimConnectionInfo":[{"id":"v","vimId":"` + absent + `","vimType":"fake"}]}`},
		{instantiate, "two VIMs", 400, fresh, `{"flavourId":"simple","vimConnectionInfo":[{"id":"v","vimType":"fake"},{"id":"w","vimType":"fake"}]}`},
		{scale, "no such aspect", 400, there, `{"type":"SCALE_OUT","aspectId":"none"}`},
		{scale, "beyond the last level", 400, there, `{"type":"SCALE_OUT","aspectId":"worker_instance","numberOfSteps":9}`},
		{scale, "below the first level", 400, there, `{"type":"SCALE_IN","aspectId":"worker_instance"}`},
		{scale, "no steps", 400, there, `{"type":"SCALE_OUT","aspectId":"worker_instance","numberOfSteps":0}`},
		{scale, "no such type", 400, there, `{"type":"SCALE_UP","aspectId":"worker_instance"}`},
		{scaleToLevel, "no such level", 400, there, `{"instantiationLevelId":"none"}`},
		{scaleToLevel, "no such aspect", 400, there, `{"scaleInfo":[{"aspectId":"none","scaleLevel":1}]}`},
		{scaleToLevel, "beyond the last level", 400, there, `{"scaleInfo":[{"aspectId":"worker_instance","scaleLevel":9}]}`},
		{scaleToLevel, "both ways", 400, there, `{"instantiationLevelId":"instantiation_level_2","scaleInfo":[{"aspectId":"worker_instance","scaleLevel":1}]}`},
		{scaleToLevel, "neither way", 400, there, `{}`},
		{changeFlavour, "the one that it has", 409, there, `{"newFlavourId":"simple"}`},
		{changeFlavour, "no such flavour", 400, there, `{"newFlavourId":"none"}`},
		{changeFlavour, "a VNF of one flavour", 404, plain, ""},
		{heal, "no such VNFC", 400, there, `{"vnfcInstanceId":["` + absent + `"]}`},
		{operate, "it is so already", 409, there, `{"changeStateTo":"STARTED"}`},
		{operate, "no such state", 400, there, `{"changeStateTo":"PAUSED"}`},
		{operate, "a timeout below 0", 400, there, `{"changeStateTo":"STOPPED","gracefulStopTimeout":-1}`},
		{changeExtConn, "no such connection point", 400, there, strings.ReplaceAll(connect("net1"), "masterNode_CP1", "none")},
		{changeExtConn, "no links", 400, there, `{"extVirtualLinks":[]}`},
		{changeExtConn, "an address that is none", 400, there, strings.ReplaceAll(connect("net1"), `"numDynamicAddresses":1`, `"fixedAddresses":["10.0.0.300"]`)},
		{terminate, "no such type", 400, there, `{"terminationType":"SOON"}`},
		{terminate, "a timeout below 0", 400, there, `{"terminationType":"GRACEFUL","gracefulTerminationTimeout":-1}`},
	} {
		if c.body == "" {
			c.body = sample(c.route, "POST")
		}
		out = append(out, asks(c.route, "POST", c.status, c.name, func(x *exam) request {
			return request{path: at(c.route, c.vnf(x)), body: c.body}
		}))
	}
	for _, route := range []string{scale, scaleToLevel, changeFlavour, terminate, heal, operate, changeExtConn} {
		ask := func(vnf func(*exam) string) func(x *exam) request {
			return func(x *exam) request { return request{path: at(route, vnf(x)), body: sample(route, "POST")} }
		}
		out = append(out,
			asks(route, "POST", 409, "NOT_INSTANTIATED", ask(fresh)),
			asks(route, "POST", 409, "an operation goes on", ask(inUse)),
		)
	}
	return out
}

// healed is a case of the heal of one VNFC: its id stays, its resource is another.
func healed(name, ids string, stretched bool) trial {
	return trial{duty{heal, "POST", 202}, name, func(x *exam) *answer {
		id := there(x)
		before := x.read(x.open, id).InstantiatedVnfInfo.VnfcResourceInfo
		a := x.ask("POST", request{path: at(heal, id), stretched: stretched,
			body: `{"vnfcInstanceId":` + strings.Replace(ids, "%s", before[0].Id, 1) + `}`})
		if a.status != 202 {
			return a
		}
		op := x.in(x.open, x.opOccOf(a), "COMPLETED")
		after := x.read(x.open, id).InstantiatedVnfInfo.VnfcResourceInfo
		if len(after) != len(before) || after[0].Id != before[0].Id || after[0].ComputeResource.ResourceId == before[0].ComputeResource.ResourceId ||
			after[1].ComputeResource.ResourceId != before[1].ComputeResource.ResourceId {
			x.t.Errorf("before %+v, after %+v", before, after)
		}
		if op.ResourceChanges == nil || len(op.ResourceChanges.AffectedVnfcs) == 0 {
			x.t.Errorf("resourceChanges %+v", op.ResourceChanges)
		}
		return a
	}}
}
