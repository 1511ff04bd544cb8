// Package openapi embeds the OpenAPI documents of the APIs that this program serves and consumes.
package openapi

import "embed"

// Documents holds sol003.yaml, the information model, and vnflcm.yaml, vnfpkgm.yaml, vims.yaml and vnfm.yaml, the APIs
// served; grant.yaml and notification.yaml are the APIs of an NFVO that are consumed.
//
//go:embed sol003.yaml grant.yaml notification.yaml vnflcm.yaml vnfpkgm.yaml vims.yaml vnfm.yaml
var Documents embed.FS
