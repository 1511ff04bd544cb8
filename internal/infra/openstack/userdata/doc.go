// Package userdata runs the LCM user data scripts of VNF packages: Python classes that turn a Base HOT, a VNFD and an
// InstantiateVnfRequest (SOL003 v2.6.1 §5.5.2.4) into the parameters of a Heat stack.
//
// A script is package content and so not trusted. It runs in a Python process of its own, in a session and, where the
// system allows it, in PID, network and IPC namespaces of its own; as an unprivileged user when we are root; with an
// almost empty environment, limits on CPU, memory, files and processes, and a deadline. It sees a private directory with
// the package's small files and a few modules of ours that stand for those that scripts import
// (tacker.vnfm.lcm_user_data, tacker.extensions.vnfm, oslo_log.log). What it is to work on goes in as JSON on standard
// input, its result comes back as JSON on a descriptor of its own; what it prints is kept for error messages only.
package userdata
