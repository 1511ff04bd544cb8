// Package csar opens VNF packages (CSAR archives, ETSI GS NFV-SOL 004 v2.6.1)
// as hostile input. It never writes to disk and fetches nothing: it validates
// the archive's directory, finds the entry definitions in one of the three
// layouts in use, lists the artifacts that TOSCA.meta and the manifest
// declare, and compares their digests.
//
// The three layouts are
//   - TOSCA-Metadata/TOSCA.meta naming Entry-Definitions (SOL004 §4.1.2),
//   - the same with ETSI-Entry-Manifest naming a manifest (SOL004 §4.1.2.3),
//   - no metadata folder: one YAML file in the root with, optionally, a
//     manifest of the same base name beside it (SOL004 §4.1.3).
package csar
