package lab

import "embed"

//go:embed behaviour
var behaviourFiles embed.FS

// Annotations of pods (on a template, for the pods made of it) and of nodes that say what becomes of them. A pod without
// any is ready at once, a Job's pod ends well at once. Durations are Go's ("1500ms").
//
// Two things happen without annotations, for manifests that cannot be changed: an image of a registry below .invalid is
// never there, and a container whose command is false crashes.
const (
	ReadyAfter = "vnfm.lab/ready-after" // how long until the pod's containers are ready
	Pull       = "vnfm.lab/pull"        // the images are not there, for this reason; "true" for ImagePullBackOff
	Crash      = "vnfm.lab/crash"       // the containers crash, for this reason; "true" for CrashLoopBackOff
	EndsAfter  = "vnfm.lab/ends-after"  // how long until a Job's pod ends
	ExitCode   = "vnfm.lab/exit-code"   // how a Job's pod ends
	GoneAfter  = "vnfm.lab/gone-after"  // how long a deleted pod stays
	NodeDown   = "vnfm.lab/down"        // of a node: it is not Ready
)

// Simulated nodes are told from others by a label.
const (
	nodeLabel      = "vnfm.lab/node"
	nodeLabelValue = "simulated"
)

// StorageClass is the default one: whatever is claimed of it is made at once, and removed with its claim.
const StorageClass = "standard"
