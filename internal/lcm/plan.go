package lcm

// Plan is what an operation is to do, settled before the grant is asked for. Drivers and hooks work by it; the instance
// that the Execution holds is laid out by it already.
type Plan struct {
	// Laid says that the Execution's instance has been laid out by the plan.
	Laid bool `json:"laid,omitempty"`
	// Aspects are the scaling aspects that change their level, for SCALE and SCALE_TO_LEVEL.
	Aspects []AspectChange `json:"aspects,omitempty"`
	// Adds are the ids of the VnfcResourceInfos that have been laid out in the instance, without resources, and are to be
	// made.
	Adds []string `json:"adds,omitempty"`
	// Leaves are the ids of the VnfcResourceInfos that are to go. Drivers correct it when the VIM has chosen otherwise; the
	// domain takes them out of the instance after the driver's steps.
	Leaves []string `json:"leaves,omitempty"`
	// Heals are the ids of the VnfcResourceInfos that are to be made again; they keep their ids.
	Heals []string `json:"heals,omitempty"`
	// Whole says that the whole VNF is healed: all that it consists of is removed and made again, by new ids, at the scale
	// levels that it has.
	Whole bool `json:"whole,omitempty"`
}

// AspectChange is a scaling aspect's way from one scale level to another.
type AspectChange struct {
	ID   string `json:"id"`
	From int    `json:"from"`
	To   int    `json:"to"`
}

// Out tells whether the change adds instances.
func (a AspectChange) Out() bool { return a.To > a.From }
