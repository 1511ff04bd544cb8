// Package config is the operator's configuration: one YAML file, a VNFM_… environment variable for every key, and a
// default for everything. The order of precedence is environment, file, default.
//
// A key openstack.stack_timeout of the file is VNFM_OPENSTACK_STACK_TIMEOUT in the environment. Durations are written as
// "10s" or "5m", sizes as "16MiB", lists in the environment as "a,b" and maps as "k=v,k2=v2". Keys that are not known are
// errors that name file and line. [Config.Print] writes every effective value with a comment on each and with secrets
// redacted.
package config
