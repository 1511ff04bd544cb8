// Package vimsapi holds the strict chi server of the VIM management API, generated from vims.yaml.
package vimsapi

//go:generate go tool -modfile=../../../tools/go.mod oapi-codegen -config cfg.yaml ../vims.yaml
