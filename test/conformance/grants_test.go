package conformance

import (
	"testing"

	"github.com/seed-f1a0ccf1/vnfm/api/openapi/sol003"
	"github.com/seed-f1a0ccf1/vnfm/internal/nfvo/nfvotest"
)

// nfvo is the NFVO that is asked for grants. It holds the requests against grant.yaml.
type nfvo struct{ *nfvotest.NFVO }

func newNFVO(t *testing.T) *nfvo {
	t.Helper()
	return &nfvo{nfvotest.Start(t)}
}

// undecided has the NFVO not decide from now on.
func (n *nfvo) undecided() { n.Behave(nfvotest.Manner{Looks: 1 << 30, Wait: "1"}) }

// grantCases are those of the grants that this program asks for (§9.4).
func grantCases() []trial {
	// granted is a case of an instantiation for which the NFVO is asked, and of the state that it comes to.
	granted := func(d duty, name string, m nfvotest.Manner, state sol003.LcmOperationState) trial {
		return trial{d, name, func(x *exam) *answer {
			x.nfvo.Behave(m)
			before := len(x.nfvo.Requests())
			looks := x.nfvo.Looks()
			id := x.created(x.granted)
			op := x.in(x.granted, x.started(x.granted, instantiate, id, toInstantiate(x.granted)), state)
			asked := x.nfvo.Requests()
			if len(asked) != before+1 || asked[before].VnfInstanceId != id || asked[before].VnfLcmOpOccId != op.Id || len(asked[before].AddResources) == 0 {
				x.t.Errorf("asked for %+v", asked[before:])
			}
			if d.route == grant && x.nfvo.Looks() == looks {
				x.t.Error("nobody has looked at the grant")
			}
			if state == "ROLLED_BACK" {
				if op.Error == nil || op.Error.Detail == "" {
					x.t.Errorf("op occ %+v", op)
				}
				if op.UnderscoreLinks["grant"].Href != "" {
					x.t.Errorf("there is no grant, and a link to it: %+v", op.UnderscoreLinks)
				}
			} else if href := op.UnderscoreLinks["grant"].Href; op.GrantId == "" || href != x.nfvo.GrantURL()+"/grants/"+op.GrantId {
				x.t.Errorf("grant %q is linked to at %q", op.GrantId, href)
			}
			return nil
		}}
	}
	return []trial{
		granted(duty{grants, "POST", 201}, "at once", nfvotest.Manner{}, "COMPLETED"),
		granted(duty{grants, "POST", 202}, "later", nfvotest.Manner{Looks: 1, Wait: "0"}, "COMPLETED"),
		granted(duty{grants, "POST", 403}, "refused", nfvotest.Manner{Refuse: "there is no room"}, "ROLLED_BACK"),
		granted(duty{grant, "GET", 200}, "decided", nfvotest.Manner{Looks: 2, Wait: "0"}, "COMPLETED"),
		granted(duty{grant, "GET", 202}, "not decided yet", nfvotest.Manner{Looks: 3, Wait: "0"}, "COMPLETED"),
		granted(duty{grant, "GET", 403}, "refused later", nfvotest.Manner{Looks: 1, Wait: "0", Refuse: "there is no room"}, "ROLLED_BACK"),
	}
}
