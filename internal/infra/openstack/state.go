package openstack

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// owner names the driver's work in an op occ.
const owner = "infra:openstack"

// stateVersion is the version of what the driver keeps about an instance and about an operation.
const stateVersion = 1

// infra is what the driver keeps about an instance.
type infra struct {
	V          int             `json:"v"`
	StackID    string          `json:"stackId,omitempty"`
	StackName  string          `json:"stackName,omitempty"`
	Region     string          `json:"region,omitempty"` // that the stack is in
	Images     []nodeImage     `json:"images,omitempty"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
	// VnfdID is the VNFD that the parameters were made by: an instance may have been given another one since.
	VnfdID string `json:"vnfdId,omitempty"`
	// Renewed has the VNFDs of the VDUs that have been healed by another one since.
	Renewed map[string]string `json:"renewed,omitempty"`
}

// vnfdOf returns the VNFD that a VDU's parameters were made by, "" when it is not known.
func (s *infra) vnfdOf(vdu string) string { return cmp.Or(s.Renewed[vdu], s.VnfdID) }

// parameters returns the stack's parameters as they were last asked for; the caller may change them.
func (s *infra) parameters() (map[string]any, error) { return decodeParameters(s.Parameters) }

func decodeParameters(raw json.RawMessage) (map[string]any, error) {
	params := map[string]any{}
	if len(raw) == 0 {
		return params, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&params); err != nil {
		return nil, fmt.Errorf("read the parameters of the stack: %w", err)
	}
	return params, nil
}

// nodeImage is a Glance image made for a node of the VNFD.
type nodeImage struct {
	Node string `json:"node"`
	ID   string `json:"id"`
	Name string `json:"name"`
}

// work is what the steps of one operation leave for one another.
type work struct {
	V          int             `json:"v"`
	Images     []nodeImage     `json:"images,omitempty"`
	Broken     *outage         `json:"broken,omitempty"` // what keeps the images from being made
	Parameters json.RawMessage `json:"parameters,omitempty"`
	Capacities map[string]int  `json:"capacities,omitempty"` // desired_capacity to write, by group
	StackID    string          `json:"stackId,omitempty"`
	Action     string          `json:"action,omitempty"` // of the stack: CREATE or UPDATE
	Before     string          `json:"before,omitempty"` // the state that the request for the action met
	Anew       []time.Time     `json:"anew,omitempty"`   // when the stack's deletion was asked for again
	Scales     []scaling       `json:"scales,omitempty"` // as the plan's aspects
}

// image returns the image made for the node.
func (w *work) image(node string) (nodeImage, bool) {
	for _, i := range w.Images {
		if i.Node == node {
			return i, true
		}
	}
	return nodeImage{}, false
}

func loadWork(x *lcm.Execution) (*work, error) {
	w := new(work)
	return w, x.WorkUpTo(stateVersion, owner, w)
}

func saveWork(x *lcm.Execution, w *work) error {
	w.V = stateVersion
	return x.SetWork(owner, w)
}

func loadInfra(i *lcm.Instance) (*infra, error) {
	s := new(infra)
	return s, i.LoadInfra(stateVersion, s)
}

func saveInfra(i *lcm.Instance, s *infra) error {
	s.V = stateVersion
	return i.SaveInfra(s)
}

// stackName is the name of an instance's stack.
func stackName(instanceID string) string { return "vnflcm_" + instanceID }

// mark is the tag that an instance's stack and images carry, and a stack for the operation that has asked for it last.
func mark(instanceID string) string { return "vnfm-" + instanceID }
