package lcm

import (
	"encoding/json"
	"fmt"
)

// What drivers keep says in its attribute "v" by which version of the driver it was written: a node that runs an older one
// leaves alone what it does not understand.

// LoadInfra reads what the instance's InfraDriver keeps about it into v, which stays as it is when there is nothing. An error:
// it was written by a newer version than the one given.
func (i *Instance) LoadInfra(version int, v any) error {
	if len(i.Infra) == 0 {
		return nil
	}
	if err := json.Unmarshal(i.Infra, v); err != nil {
		return fmt.Errorf("read what the driver keeps about VNF instance %s: %w", i.ID, err)
	}
	if by := writtenBy(i.Infra); by > version {
		return fmt.Errorf("what the driver keeps about VNF instance %s was written by a newer version (%d)", i.ID, by)
	}
	return nil
}

// SaveInfra replaces what the instance's InfraDriver keeps about it; v has its version.
func (i *Instance) SaveInfra(v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("keep what the driver has to know of VNF instance %s: %w", i.ID, err)
	}
	i.Infra = raw
	return nil
}

// WorkUpTo is Work, with an error when the owner's work was written by a newer version than the one given.
func (x *Execution) WorkUpTo(version int, owner string, v any) error {
	if by := writtenBy(x.Op.Work[owner]); by > version {
		return fmt.Errorf("the work of %s in op occ %s was written by a newer version (%d)", owner, x.Op.ID, by)
	}
	return x.Work(owner, v)
}

// writtenBy is the version that a driver has written something by, 0 when it does not say.
func writtenBy(raw json.RawMessage) int {
	var kept struct {
		V int `json:"v"`
	}
	if json.Unmarshal(raw, &kept) != nil {
		return 0
	}
	return kept.V
}
