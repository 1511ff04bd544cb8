// Package vnflcmapi holds the strict chi server of the VNF lifecycle management interface (SOL003 v2.6.1 §5), generated from vnflcm.yaml.
package vnflcmapi

//go:generate go tool -modfile=../../../tools/go.mod oapi-codegen -config cfg.yaml ../vnflcm.yaml
