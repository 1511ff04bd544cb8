// Package toscahot translates a deployment flavour of a VNFD (SOL001 v2.6.1 §6) to Heat Orchestration Templates, for VNF
// packages that bring no Base HOT.
//
// [Translate] is a pure function: the same input gives the same text, so that a template need not be kept. What an operation
// was granted, and the images that it uploaded, go through the stack's parameters (nfv.VDU.<node>.flavor, .image and .zone),
// which are kept; given back as [Input.Parameters] they lead to the same stack again.
//
// Resources are named like the nodes that they are made of: a VDU's server, its ports and volumes stand side by side in one
// stack, with their nodes' names. VDUs that a scaling aspect scales are in the aspect's nested template, <aspect>.hot.yaml,
// whose AutoScalingGroup is named like the aspect and whose policies are <aspect>_scale_out and <aspect>_scale_in; a VDU of
// which a fixed number greater than one is asked for has a nested stack for each instance. Networks, flavors and server
// groups are at the top. Names follow from the VNFD alone, and what the request says reaches nested templates by their
// parameters: an update of the request changes what it says and replaces nothing else.
//
// Not translated, for want of a counterpart: guaranteed (minimal) bit rates and those of a link's root, affinity beyond single
// hosts, object and file storage, VirtualLinkInstantiationLevels.
package toscahot
