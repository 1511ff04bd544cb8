// Package sol003 holds the information model of ETSI GS NFV-SOL 003 v2.6.1, of the VNF packages of SOL 005 and of
// registered VIMs, generated from sol003.yaml: each shape that a standard defines, once.
package sol003

//go:generate go tool -modfile=../../../tools/go.mod oapi-codegen -config cfg.yaml ../sol003.yaml
