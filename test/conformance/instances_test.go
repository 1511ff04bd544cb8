package conformance

import (
	"net/http"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
)

// instanceCases are those of the VNF instances as resources (§5.4.2, §5.4.3).
func instanceCases() []trial {
	create := func(more string) func(x *exam) request {
		return func(x *exam) request {
			return request{path: instances, body: `{"vnfdId":"` + x.open.vnfdID + `"` + more + `}`}
		}
	}
	conditional := func(method string, status int, name, body, tag string) trial {
		return asks(instance, method, status, name, func(x *exam) request {
			return request{path: at(instance, x.created(x.open)), body: body, headers: []string{"If-Match: " + tag}}
		})
	}
	return []trial{
		{duty{instances, "POST", 201}, "with all attributes", func(x *exam) *answer {
			a := x.ask("POST", create(`,"vnfInstanceName":"n","vnfInstanceDescription":"d","metadata":{"k":"v","o":{"n":1}},"unknown":1`)(x))
			i := decode[sol003.VnfInstance](x, a)
			if i.VnfInstanceName != "n" || i.VnfInstanceDescription != "d" || i.InstantiationState != sol003.InstantiationStateNotInstantiated ||
				!cmp.Equal(i.Metadata, map[string]any{"k": "v", "o": map[string]any{"n": 1.0}}) {
				x.t.Errorf("%s", a.body)
			}
			if want := x.open.url + at(instance, i.Id); a.text("Location") != want || a.text("ETag") == "" {
				x.t.Errorf("Location %q, want %q; ETag %q", a.text("Location"), want, a.text("ETag"))
			}
			if !cmp.Equal(x.read(x.open, i.Id), i) {
				x.t.Error("what is read is not what was answered")
			}
			return a
		}},
		{duty{instances, "POST", 201}, "Idempotency-Key comes again", func(x *exam) *answer {
			q := create("")(x)
			q.headers = []string{"Idempotency-Key: create-1"}
			first := x.want(201, "POST", q)
			again := x.ask("POST", q)
			if string(first.body) != string(again.body) || first.text("Location") != again.text("Location") || first.text("ETag") != again.text("ETag") {
				x.t.Errorf("first %s, then %s", first.body, again.body)
			}
			return again
		}},
		{duty{instances, "POST", 422}, "Idempotency-Key of another request", func(x *exam) *answer {
			q := create("")(x)
			q.headers = []string{"Idempotency-Key: create-2"}
			x.want(201, "POST", q)
			q.body = `{"vnfdId":"` + x.open.vnfdID + `","vnfInstanceName":"another"}`
			return x.ask("POST", q)
		}},
		asks(instances, "POST", 422, "unknown vnfdId", func(*exam) request {
			return request{path: instances, body: `{"vnfdId":"` + absent + `"}`}
		}),
		asks(instances, "POST", 422, "a package that is disabled", func(x *exam) request {
			return request{path: instances, body: `{"vnfdId":"` + x.open.disabledVnfdID + `"}`}
		}),
		sends(instances, "POST", 400, "without vnfdId", `{}`),
		sends(instances, "POST", 400, "vnfdId is no identifier of ours", `{"vnfdId":"x"}`),
		asks(instances, "POST", 400, "name too long", create(`,"vnfInstanceName":"`+strings.Repeat("n", 256)+`"`)),
		asks(instances, "POST", 400, "metadata is no map", create(`,"metadata":[]`)),
		asks(instances, "POST", 400, "name is null", create(`,"vnfInstanceName":null`)),

		{duty{instance, "GET", 200}, "NOT_INSTANTIATED", func(x *exam) *answer {
			id := x.created(x.open)
			x.read(x.open, id)
			return x.ask("GET", request{path: at(instance, id)})
		}},
		{duty{instance, "GET", 200}, "INSTANTIATED", func(x *exam) *answer {
			id := x.instantiated(x.open)
			i := x.read(x.open, id)
			if i.InstantiatedVnfInfo.VnfState != "STARTED" || i.InstantiatedVnfInfo.FlavourId != "simple" {
				x.t.Errorf("instantiatedVnfInfo %+v", i.InstantiatedVnfInfo)
			}
			return x.ask("GET", request{path: at(instance, id)})
		}},
		asks(instance, "GET", 200, "another ETag", func(x *exam) request {
			return request{path: at(instance, x.created(x.open)), headers: []string{`If-None-Match: "99"`}}
		}),
		{duty{instance, "GET", 304}, "the ETag that is known", func(x *exam) *answer { return x.unchanged(at(instance, x.created(x.open))) }},
		asks(instance, "GET", 404, "of another project", func(x *exam) request {
			return request{on: x.guarded, path: at(instance, x.ofOperator()), headers: basic("stranger")}
		}),

		{duty{instance, "PATCH", 202}, "a merge patch", func(x *exam) *answer {
			a := x.want(201, "POST", create(`,"vnfInstanceDescription":"d","metadata":{"a":"1","b":{"c":"2","d":"3"}}`)(x))
			id := decode[sol003.VnfInstance](x, a).Id
			a = x.ask("PATCH", request{path: at(instance, id), headers: []string{patchType},
				body: `{"vnfInstanceName":"m","vnfInstanceDescription":null,"metadata":{"a":null,"b":{"c":"4"}},"extensions":{"e":"5"},"vnfConfigurableProperties":{"p":"6"},"unknown":7}`})
			op := x.in(x.open, x.opOccOf(a), "COMPLETED")
			i := x.read(x.open, id)
			if i.VnfInstanceName != "m" || i.VnfInstanceDescription != "" || !cmp.Equal(i.Metadata, map[string]any{"b": map[string]any{"c": "4", "d": "3"}}) ||
				!cmp.Equal(i.Extensions, map[string]any{"e": "5"}) || !cmp.Equal(i.VnfConfigurableProperties, map[string]any{"p": "6"}) {
				x.t.Errorf("after the patch: %+v", i)
			}
			if op.Operation != "MODIFY_INFO" || op.ChangedInfo == nil || op.ChangedInfo.VnfInstanceName != "m" {
				x.t.Errorf("op occ %+v", op)
			}
			return a
		}},
		{duty{instance, "PATCH", 202}, "as application-json", func(x *exam) *answer {
			id := x.created(x.open)
			a := x.ask("PATCH", request{path: at(instance, id), headers: []string{jsonType}, body: `{"vnfInstanceDescription":"later"}`})
			x.in(x.open, x.opOccOf(a), "COMPLETED")
			if i := x.read(x.open, id); i.VnfInstanceDescription != "later" || i.VnfInstanceName == "" {
				x.t.Errorf("after the patch: %+v", i)
			}
			return a
		}},
		{duty{instance, "PATCH", 202}, "another VNFD", func(x *exam) *answer {
			id := x.created(x.open)
			a := x.ask("PATCH", request{path: at(instance, id), headers: []string{patchType}, body: `{"vnfdId":"` + x.open.plainVnfdID + `"}`})
			x.in(x.open, x.opOccOf(a), "COMPLETED")
			if i := x.read(x.open, id); i.VnfdId != x.open.plainVnfdID || i.VnfProductName != "Gateway with many ports" {
				x.t.Errorf("after the patch: %+v", i)
			}
			return a
		}},
		{duty{instance, "PATCH", 202}, "of nothing", func(x *exam) *answer {
			a := x.ask("PATCH", request{path: at(instance, x.created(x.open)), headers: []string{patchType}, body: `{}`})
			x.in(x.open, x.opOccOf(a), "COMPLETED")
			return a
		}},
		{duty{instance, "PATCH", 202}, "If-Match holds", func(x *exam) *answer {
			id := x.created(x.open)
			tag := x.want(200, "GET", request{path: at(instance, id)}).text("ETag")
			a := x.ask("PATCH", request{path: at(instance, id), body: `{"vnfInstanceName":"m"}`, headers: []string{"If-Match: " + tag}})
			x.in(x.open, x.opOccOf(a), "COMPLETED")
			if now := x.want(200, "GET", request{path: at(instance, id)}).text("ETag"); now == tag {
				x.t.Errorf("the ETag is %s still", now)
			}
			return a
		}},
		conditional("PATCH", 412, "If-Match does not hold", `{"vnfInstanceName":"m"}`, `"99"`),
		conditional("PATCH", 412, "a weak ETag", `{"vnfInstanceName":"m"}`, `W/"1"`),
		asks(instance, "PATCH", 409, "an operation goes on", func(x *exam) request {
			id, _ := x.occupied(x.open)
			return request{path: at(instance, id), body: `{"vnfInstanceName":"m"}`}
		}),
		asks(instance, "PATCH", 400, "vnfdId is not there", func(x *exam) request {
			return request{path: at(instance, x.created(x.open)), body: `{"vnfdId":"` + absent + `"}`}
		}),
		asks(instance, "PATCH", 400, "vimConnectionInfo before the VNF is there", func(x *exam) request {
			return request{path: at(instance, x.created(x.open)), body: `{"vimConnectionInfo":[{"id":"v","vimType":"fake"}]}`}
		}),
		sends(instance, "PATCH", 400, "vnfdId is null", `{"vnfdId":null}`),
		sends(instance, "PATCH", 400, "metadata is no map", `{"metadata":"m"}`),

		{duty{instance, "DELETE", 204}, "NOT_INSTANTIATED", func(x *exam) *answer {
			id := x.created(x.open)
			a := x.ask("DELETE", request{path: at(instance, id)})
			x.want(404, "GET", request{path: at(instance, id)})
			x.want(404, "DELETE", request{path: at(instance, id)})
			return a
		}},
		{duty{instance, "DELETE", 204}, "If-Match holds", func(x *exam) *answer {
			id := x.created(x.open)
			tag := x.want(200, "GET", request{path: at(instance, id)}).text("ETag")
			return x.ask("DELETE", request{path: at(instance, id), headers: []string{"If-Match: " + tag}})
		}},
		conditional("DELETE", 412, "If-Match does not hold", "", `"99"`),
		asks(instance, "DELETE", 409, "INSTANTIATED", func(x *exam) request {
			return request{path: at(instance, x.instantiated(x.open))}
		}),
		asks(instance, "DELETE", 409, "an operation goes on", func(x *exam) request {
			id := x.created(x.open)
			x.in(x.open, x.started(x.open, instantiate, id, toInstantiate(x.open, knobs(hangs))), "PROCESSING")
			return request{path: at(instance, id)}
		}),
		asks(instance, "DELETE", 409, "an operation is in FAILED_TEMP", func(x *exam) request {
			id, _ := x.fell(x.open, "create")
			return request{path: at(instance, id)}
		}),
	}
}

// unchanged asks for a resource as of the ETag that it has.
func (x *exam) unchanged(path string) *answer {
	x.t.Helper()
	tag := x.want(200, "GET", request{path: path}).text("ETag")
	a := x.ask("GET", request{path: path, headers: []string{"If-None-Match: " + tag}})
	if len(a.body) > 0 || a.text("ETag") != tag {
		x.t.Errorf("ETag %q, then %q with %s", tag, a.text("ETag"), a.body)
	}
	return a
}

// listCases are those of queries of lists (SOL013 v2.6.1 §5.2 to §5.4).
func listCases() []trial {
	var out []trial
	for _, c := range []struct{ route, name, query string }{
		{instances, "a filter", "filter=(eq,instantiationState,NOT_INSTANTIATED);(neq,vnfInstanceName,zz)"},
		{instances, "a filter of every operator", "filter=(eq,vnfProvider,a);(neq,vnfProvider,b);(gt,vnfProvider,a);(gte,vnfProvider,a);(lt,vnfProvider,z);(lte,vnfProvider,z);" +
			"(in,vnfProvider,a,b);(nin,vnfProvider,c);(cont,vnfProvider,a);(ncont,vnfProvider,b)"},
		{instances, "a nested attribute", "filter=(eq,instantiatedVnfInfo/vnfState,STARTED)"},
		{instances, "a key with an escape", "filter=(eq,metadata/a~1b,1)"},
		{instances, "quotes", "filter=(eq,vnfInstanceName,'a,b''(c)')"},
		{instances, "a filter that is escaped", "filter=%28eq%2CvnfProvider%2Ca%29%3B%28eq%2CvnfProductName%2Cb%29"},
		{instances, "all_fields", "all_fields"},
		{instances, "fields", "fields=metadata,instantiatedVnfInfo/scaleStatus"},
		{instances, "fields with exclude_default", "fields=metadata&exclude_default"},
		{instances, "exclude_fields", "exclude_fields=metadata,vnfInstanceName"},
		{instances, "exclude_default", "exclude_default"},
		{instances, "all_records", "all_records=yes"},
		{opOccs, "a filter", "filter=(eq,operation,INSTANTIATE);(in,operationState,COMPLETED,FAILED)"},
		{opOccs, "a time", "filter=(gt,startTime,2020-01-01T00:00:00Z)"},
		{opOccs, "a boolean", "filter=(eq,isCancelPending,false)"},
		{opOccs, "all_fields", "all_fields"},
		{opOccs, "fields", "fields=operationParams,error"},
		{opOccs, "exclude_fields", "exclude_fields=error"},
		{opOccs, "exclude-fields", "exclude-fields=error"},
		{subscriptions, "a filter", "filter=(eq,callbackUri,http://h)"},
		{subscriptions, "a filter by Tacker's name", "filter=(eq,operationTypes,SCALE)"},
		{subscriptions, "selectors", "fields=criteria,objectInstanceIds&all_fields"},
	} {
		out = append(out, asks(c.route, "GET", 200, c.name, func(x *exam) request {
			if c.route == opOccs {
				x.instantiated(x.open)
			}
			return request{path: c.route + "?" + c.query}
		}))
	}
	for _, route := range []string{instances, opOccs, subscriptions} {
		for name, query := range map[string]string{
			"an unknown attribute":     "filter=(eq,foo,1)",
			"an unknown operator":      "filter=(is,id,1)",
			"no expression":            "filter=eq,id,1",
			"half an expression":       "filter=(eq,id,1",
			"two values of eq":         "filter=(eq,id,a,b)",
			"quotes that do not close": "filter=(eq,id,'a)",
			"half an escape":           "filter=%zz",
			"a marker that is none":    "nextpage_opaque_marker=x",
		} {
			out = append(out, asks(route, "GET", 400, name, func(*exam) request { return request{path: route + "?" + query} }))
		}
		if route == subscriptions {
			continue
		}
		for name, query := range map[string]string{
			"an unknown field":                   "fields=wrong_field",
			"all_fields with fields":             "all_fields&fields=metadata,error",
			"all_fields with exclude_default":    "all_fields&exclude_default",
			"fields with exclude_fields":         "fields=_links&exclude_fields=_links",
			"exclude_fields and exclude_default": "exclude_fields=_links&exclude_default",
		} {
			out = append(out, asks(route, "GET", 400, name, func(*exam) request { return request{path: route + "?" + query} }))
		}
	}
	return append(out,
		asks(instances, "GET", 400, "an unknown parameter", func(*exam) request { return request{path: instances + "?vnfInstanceName.eq=a"} }),
		trial{duty{instances, "GET", 200}, "page by page", func(x *exam) *answer {
			for range 4 {
				x.created(x.open)
			}
			return x.pages(instances, "filter=(eq,instantiationState,NOT_INSTANTIATED)")
		}},
		asks(opOccs, "GET", 400, "a marker of another list", func(x *exam) request {
			for range 4 {
				x.created(x.open)
			}
			_, query, _ := strings.Cut(x.want(200, "GET", request{path: instances}).text("Link"), "?")
			return request{path: opOccs + "?" + strings.TrimSuffix(query, `>; rel="next"`)}
		}),
		trial{duty{opOccs, "GET", 200}, "page by page", func(x *exam) *answer {
			x.instantiated(x.open)
			for range 4 {
				x.in(x.open, x.started(x.open, instance, x.created(x.open), `{"vnfInstanceName":"n"}`), "COMPLETED")
			}
			return x.pages(opOccs, "")
		}},
		trial{duty{instances, "GET", 200}, "what is left out by default", func(x *exam) *answer {
			id := x.instantiated(x.open)
			a := x.ask("GET", request{path: instances + "?filter=(eq,id," + id + ")"})
			i := decode[[]map[string]any](x, a)
			if len(i) != 1 || i[0]["id"] != id || i[0]["instantiatedVnfInfo"] != nil || i[0]["vimConnectionInfo"] != nil || i[0]["_links"] == nil {
				x.t.Errorf("%s", a.body)
			}
			return a
		}},
		trial{duty{instances, "GET", 200}, "of one's own project", func(x *exam) *answer {
			id := x.ofOperator()
			a := x.ask("GET", request{on: x.guarded, path: instances + "?all_records=yes", headers: basic("stranger")})
			if strings.Contains(string(a.body), id) {
				x.t.Errorf("a stranger sees %s", a.body)
			}
			if a = x.ask("GET", request{on: x.guarded, path: instances + "?all_records=yes", headers: basic("reader")}); !strings.Contains(string(a.body), id) {
				x.t.Errorf("the project's reader does not see %s: %s", id, a.body)
			}
			return a
		}},
		trial{duty{subscriptions, "GET", 200}, "page by page", func(x *exam) *answer {
			for range 5 {
				x.subscribed("")
			}
			return x.pages(subscriptions, "")
		}},
	)
}

// pages follows the links of a list of at least two pages to its end, and returns the last page. All must be there, once.
func (x *exam) pages(route, query string) *answer {
	x.t.Helper()
	type one struct{ ID string }
	seen := map[string]bool{}
	path := route + "?" + query
	for n := 0; ; n++ {
		a := x.want(http.StatusOK, "GET", request{path: path})
		for _, r := range decode[[]one](x, a) {
			if seen[r.ID] {
				x.t.Fatalf("%s is there twice", r.ID)
			}
			seen[r.ID] = true
		}
		link := a.text("Link")
		if link == "" {
			whole := x.want(http.StatusOK, "GET", request{path: route + "?" + query + "&all_records=yes"})
			if all := decode[[]one](x, whole); len(all) != len(seen) || n == 0 {
				x.t.Errorf("%d on %d pages, %d in one", len(seen), n+1, len(all))
			}
			return a
		}
		target, ok := strings.CutSuffix(link, `>; rel="next"`)
		target, ok2 := strings.CutPrefix(target, "<"+x.open.url)
		if !ok || !ok2 {
			x.t.Fatalf("Link %s", link)
		}
		path = target
	}
}

// ofOperator makes a VNF instance of the project p1.
func (x *exam) ofOperator() string {
	x.t.Helper()
	// The package is the administrator's, whose project is another.
	q := request{on: x.guarded, path: instances, body: `{"vnfdId":"` + x.guarded.vnfdID + `"}`, headers: basic("operator")}
	return decode[sol003.VnfInstance](x, x.want(201, "POST", q)).Id
}
