// Package client is the command line client's half of vnfm: it speaks to a SOL003 VNF manager the way
// python-tackerclient does (the same requests, headers, messages and output), so that scripts written for
// `openstack vnflcm …`, `openstack vnf package …` and `openstack vim …` work with `vnfm …` unchanged, and adds waiting
// with live progress.
//
// A [Client] sends requests. [ShowTable] and [ListTable] turn answers into rows, [Format] writes rows as table, json,
// yaml, value, csv or shell text. JSON objects keep the order of their keys throughout ([Object]), for the output does.
package client
