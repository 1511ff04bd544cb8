package fake

import (
	"context"
	"encoding/json"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

var _ lcm.Verifier = (*Driver)(nil)

// Verify implements lcm.Verifier: there is what is recorded, unless the knob Drift says otherwise.
func (d *Driver) Verify(ctx context.Context, in *lcm.Inspection) ([]lcm.Difference, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	k, err := d.given(in.Instance.Info.AdditionalParams["fake"])
	if err != nil {
		return nil, err
	}
	if k.FailStep == "verify" {
		return nil, lcm.Errorf(lcm.KindRetryable, "the fake VIM does not answer about VNF instance %s, as asked", in.Instance.ID)
	}
	var have infra
	if len(in.Instance.Infra) > 0 {
		if err := json.Unmarshal(in.Instance.Infra, &have); err != nil {
			return nil, lcm.Errorf(lcm.KindInternal, "read what is kept about VNF instance %s: %w", in.Instance.ID, err)
		}
	}
	if have.Name == "" {
		return []lcm.Difference{{Kind: lcm.DifferenceMissing, Part: lcm.PartVNF, Found: "nothing", Mend: lcm.HealOf()}}, nil
	}
	var out []lcm.Difference
	for _, v := range in.Instance.Info.VnfcResourceInfo {
		if h := v.ComputeResource; k.Drift != "" && h.ResourceId == "server-"+v.Id {
			out = append(out, lcm.Difference{
				Kind: k.Drift, Part: lcm.PartVNFC, ID: v.Id, Name: v.VduId, Resource: &h,
				Recorded: "server " + h.ResourceId, Found: "what is asked for", Mend: lcm.HealOf(v.Id),
			})
		}
	}
	return out, nil
}
