// Package vnfpkgmapi holds the strict chi server of the VNF package management interface (SOL005 v2.6.1 §9, SOL003 v2.6.1 §10), generated from vnfpkgm.yaml.
package vnfpkgmapi

//go:generate go tool -modfile=../../../tools/go.mod oapi-codegen -config cfg.yaml ../vnfpkgm.yaml
