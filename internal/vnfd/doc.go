// Package vnfd reads VNF descriptors written in TOSCA YAML after ETSI GS
// NFV-SOL 001 v2.6.1 from a file system, usually that of an opened VNF package.
//
// [Read] follows imports, resolves types through derived_from, checks the
// template's properties against their definitions and returns a [Descriptor]:
// plain data that survives a round trip through encoding/json. What is wrong
// with a descriptor comes back as [Diagnostics], each with file, line and
// column. Input is taken for hostile: depth, size and alias expansion are
// bounded and nothing outside the file system is touched.
package vnfd
