package conformance

import (
	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

// opOccCases are those of op occs and of what can be done with them (§5.4.12 to §5.4.17, §5.6.2).
func opOccCases() []trial {
	// acted is a case of what is done with an op occ that make makes, and of the state that this leads to.
	acted := func(route, name, body string, make func(x *exam) (id, opOccID string), state sol003.LcmOperationState) trial {
		return trial{duty{route, "POST", 202}, name, func(x *exam) *answer {
			_, op := make(x)
			a := x.ask("POST", request{path: at(route, op), body: body})
			if a.status == 202 {
				if got := x.opOccOf(a); got != op {
					x.t.Errorf("Location names %s, want %s", got, op)
				}
				if ended := x.in(x.open, op, state); ended.IsCancelPending || ended.CancelMode != "" {
					x.t.Errorf("op occ %+v", ended)
				}
			}
			return a
		}}
	}
	refused := func(route string, status int, name, body string, make func(x *exam) (id, opOccID string)) trial {
		return asks(route, "POST", status, name, func(x *exam) request {
			_, op := make(x)
			return request{path: at(route, op), body: body}
		})
	}
	fell := func(x *exam) (string, string) { return x.fell(x.open, "create") }
	occupied := func(x *exam) (string, string) { return x.occupied(x.open) }
	completed := func(x *exam) (string, string) {
		id := x.created(x.open)
		op := x.started(x.open, instantiate, id, toInstantiate(x.open))
		x.in(x.open, op, "COMPLETED")
		return id, op
	}
	// failing is an operation on a VNF that is there, which fails once.
	failing := func(route, body string) func(x *exam) (string, string) {
		return func(x *exam) (string, string) {
			id := x.instantiated(x.open)
			op := x.started(x.open, route, id, `{`+body+`,`+knobs(`"failStep":"wait","failTimes":1`)+`}`)
			x.in(x.open, op, "FAILED_TEMP")
			return id, op
		}
	}
	// undoing is an instantiation whose rollback goes on for ever.
	undoing := func(x *exam) (string, string) {
		id := x.created(x.open)
		op := x.started(x.open, instantiate, id, toInstantiate(x.open, knobs(`"failStep":"create","failTimes":1,"hangStep":"delete-wait"`)))
		x.in(x.open, op, "FAILED_TEMP")
		x.want(202, "POST", request{path: at(rollback, op)})
		x.in(x.open, op, "ROLLING_BACK")
		return id, op
	}
	out := []trial{
		{duty{opOcc, "GET", 200}, "COMPLETED", func(x *exam) *answer {
			id, op := completed(x)
			a := x.ask("GET", request{path: at(opOcc, op)})
			o := decode[sol003.VnfLcmOpOcc](x, a)
			if o.VnfInstanceId != id || o.Operation != "INSTANTIATE" || o.OperationParams["flavourId"] != "simple" || o.ResourceChanges == nil || a.text("ETag") == "" {
				x.t.Errorf("%s", a.body)
			}
			return a
		}},
		{duty{opOcc, "GET", 200}, "FAILED_TEMP", func(x *exam) *answer {
			_, op := fell(x)
			a := x.ask("GET", request{path: at(opOcc, op)})
			if o := decode[sol003.VnfLcmOpOcc](x, a); o.Error == nil || o.Error.Detail == "" {
				x.t.Errorf("%s", a.body)
			}
			return a
		}},
		{duty{opOcc, "GET", 304}, "the ETag that is known", func(x *exam) *answer {
			_, op := completed(x)
			return x.unchanged(at(opOcc, op))
		}},

		acted(retry, "of an instantiation", "", fell, "COMPLETED"),
		acted(retry, "of a termination", "", func(x *exam) (string, string) {
			id := x.instantiated(x.open)
			op := x.started(x.open, terminate, id, `{"terminationType":"FORCEFUL",`+knobs(`"failStep":"delete","failTimes":1`)+`}`)
			x.in(x.open, op, "FAILED_TEMP")
			return id, op
		}, "COMPLETED"),
		acted(retry, "of scaling out", "", failing(scale, `"type":"SCALE_OUT","aspectId":"worker_instance"`), "COMPLETED"),
		acted(retry, "of a change of connectivity", "", failing(changeExtConn, connect("net1")[1:len(connect("net1"))-1]), "COMPLETED"),
		acted(rollback, "of an instantiation", "", fell, "ROLLED_BACK"),
		acted(rollback, "of scaling out", "", failing(scale, `"type":"SCALE_OUT","aspectId":"worker_instance"`), "ROLLED_BACK"),
		acted(rollback, "of a change of flavour", "", failing(changeFlavour, `"newFlavourId":"complex"`), "ROLLED_BACK"),
		acted(cancel, "PROCESSING, at once", `{"cancelMode":"FORCEFUL"}`, occupied, "FAILED_TEMP"),
		acted(cancel, "PROCESSING, gracefully", `{"cancelMode":"GRACEFUL"}`, func(x *exam) (string, string) {
			id := x.instantiated(x.open)
			op := x.started(x.open, heal, id, `{`+knobs(`"waitSeconds":1`)+`}`)
			x.in(x.open, op, "PROCESSING")
			return id, op
		}, "FAILED_TEMP"),
		acted(cancel, "ROLLING_BACK", `{"cancelMode":"FORCEFUL"}`, undoing, "FAILED_TEMP"),
		{duty{cancel, "POST", 202}, "STARTING", func(x *exam) *answer {
			x.nfvo.undecided()
			id := x.created(x.granted)
			op := x.started(x.granted, instantiate, id, toInstantiate(x.granted))
			if o := x.shown(x.granted, op); o.OperationState != "STARTING" {
				x.t.Fatalf("op occ %+v", o)
			}
			a := x.ask("POST", request{on: x.granted, path: at(cancel, op), body: `{"cancelMode":"FORCEFUL"}`})
			x.in(x.granted, op, "ROLLED_BACK")
			return a
		}},
		{duty{cancel, "POST", 202}, "and seen at once", func(x *exam) *answer {
			_, op := occupied(x)
			a := x.ask("POST", request{path: at(cancel, op), body: `{"cancelMode":"GRACEFUL"}`})
			if o := x.shown(x.open, op); o.OperationState == "PROCESSING" && (!o.IsCancelPending || o.CancelMode != "GRACEFUL") {
				x.t.Errorf("op occ %+v", o)
			}
			return a
		}},
		{duty{fail, "POST", 200}, "FAILED_TEMP", func(x *exam) *answer {
			id, op := fell(x)
			a := x.ask("POST", request{path: at(fail, op)})
			o := decode[sol003.VnfLcmOpOcc](x, a)
			if o.Id != op || o.OperationState != "FAILED" || o.Error == nil {
				x.t.Errorf("%s", a.body)
			}
			x.links(o)
			x.in(x.open, x.started(x.open, instantiate, id, toInstantiate(x.open)), "COMPLETED") // the VNF is free again
			return a
		}},

		refused(rollback, 409, "of scaling in", "", func(x *exam) (string, string) {
			id := x.instantiated(x.open)
			x.in(x.open, x.started(x.open, scale, id, `{"type":"SCALE_OUT","aspectId":"worker_instance"}`), "COMPLETED")
			op := x.started(x.open, scale, id, `{"type":"SCALE_IN","aspectId":"worker_instance",`+knobs(`"failStep":"wait","failTimes":1`)+`}`)
			x.in(x.open, op, "FAILED_TEMP")
			return id, op
		}),
		refused(rollback, 409, "of a heal", "", func(x *exam) (string, string) {
			id := x.instantiated(x.open)
			op := x.started(x.open, heal, id, `{`+knobs(`"failStep":"delete","failTimes":1`)+`}`)
			x.in(x.open, op, "FAILED_TEMP")
			return id, op
		}),
		refused(cancel, 409, "COMPLETED", `{"cancelMode":"FORCEFUL"}`, completed),
		refused(cancel, 409, "FAILED_TEMP", `{"cancelMode":"FORCEFUL"}`, fell),
		refused(cancel, 409, "canceled already", `{"cancelMode":"GRACEFUL"}`, func(x *exam) (string, string) {
			id, op := occupied(x)
			x.want(202, "POST", request{path: at(cancel, op), body: `{"cancelMode":"FORCEFUL"}`})
			return id, op
		}),
		sends(cancel, "POST", 400, "no such mode", `{"cancelMode":"SOON"}`),
		sends(cancel, "POST", 400, "no mode", `{}`),
	}
	for _, route := range []string{retry, rollback, fail} {
		out = append(out,
			refused(route, 409, "COMPLETED", "", completed),
			refused(route, 409, "PROCESSING", "", occupied),
			refused(route, 409, "ROLLING_BACK", "", undoing),
			refused(route, 409, "FAILED", "", func(x *exam) (string, string) {
				id, op := fell(x)
				x.want(200, "POST", request{path: at(fail, op)})
				return id, op
			}),
		)
	}
	return out
}
