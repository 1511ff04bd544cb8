// Package openapi embeds the OpenAPI documents of the APIs that this program serves and consumes.
package openapi

import "embed"

// Documents holds sol003.yaml, the information model, and vnflcm.yaml, vnfpkgm.yaml and vims.yaml, the APIs served.
//
//go:embed sol003.yaml vnflcm.yaml vnfpkgm.yaml vims.yaml
var Documents embed.FS
