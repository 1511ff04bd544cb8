// Package httpapi serves the REST APIs: VNF lifecycle management (SOL003 v2.6.1 §5), VNF package management (SOL005
// v2.6.1 §9 with SOL003 v2.6.1 §10) and the registration of VIMs.
//
// It routes, authenticates, checks bodies against the OpenAPI documents, understands attribute filters, selectors and
// paging (SOL013 v2.6.1 §5), answers conditional and range requests, and turns classed errors into problem details. What
// a request does is done by the Deps.
//
// Representations are stored as they are answered: reading one copies its bytes and adds the links; leaving attributes
// out cuts the bytes. Nothing on that path decodes a body.
package httpapi
