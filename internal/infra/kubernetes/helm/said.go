package helm

import (
	"cmp"
	"encoding/base64"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// maxSaid bounds how much of what helm says is taken over.
const maxSaid = 4096

// complaint returns what helm says is wrong, of all that it has said: from the line on that begins with "Error: ", else all but
// its log.
func complaint(said string) string {
	if at := strings.Index("\n"+said, "\nError: "); at >= 0 {
		said = said[at+len("Error: "):]
	} else {
		var lines []string
		for line := range strings.Lines(said) {
			if !strings.HasPrefix(line, "level=") {
				lines = append(lines, line)
			}
		}
		said = strings.Join(lines, "")
	}
	said = strings.TrimSpace(said)
	said = strings.TrimSuffix(said, "Use --debug flag to render out invalid YAML")
	if said = strings.TrimSpace(said); len(said) > maxSaid {
		said = said[:maxSaid] + "…"
	}
	return strings.ToValidUTF8(said, "\uFFFD")
}

// passing are texts of failures that pass by themselves, lower case: no connection, an API server that is busy or being started,
// credentials that are being replaced, a run of another that has not ended.
var passing = []string{
	"connection refused", "connection reset", "broken pipe", "i/o timeout", "tls handshake timeout", "unexpected eof", ": eof",
	"no route to host", "network is unreachable", "server misbehaving", "no such host", "http2: client connection lost",
	"etcdserver:", "too many requests", "the server is currently unable to handle the request", "service unavailable",
	"the server was unable to return a response in the time allotted", "kubernetes cluster unreachable", "unauthorized",
	"the object has been modified", "another operation (install/upgrade/rollback) is in progress", "client rate limiter",
	"error looking up service account", "apiserver not ready", "bad gateway", "gateway timeout",
	"failed to delete release:", // helm could not make sense of the cluster's kinds: one may be just coming or going
}

// kindOf classes what helm says is wrong. A hook that fails, or does not end, is the chart's fault, and so is all that is wrong when
// nobody is called. A template that ends too early is said to have an unexpected EOF as well.
func (j job) kindOf(said string) lcm.Kind {
	low := strings.ToLower(said)
	parsing := strings.Contains(low, "parse error")
	for _, text := range passing {
		if j.access != nil && strings.Contains(low, text) && (!parsing || !strings.Contains(text, "eof")) {
			return lcm.KindRetryable
		}
	}
	return lcm.KindTerminal
}

// telling are names of values that are secrets.
var telling = regexp.MustCompile(`(?i)pass|secret|token|key|cred|auth|cert|private`)

// hidden stands for what is not shown.
const hidden = "***"

// scrubbed returns a text without the credentials that the run had, and without values whose names say that they are secrets.
func (j job) scrubbed(said string) string {
	var hide []string
	if j.access != nil {
		hide = append(hide, j.access.Token.Reveal(), j.access.Password.Reveal(), j.access.Key.Reveal())
	}
	if set, err := parse(j.set); err == nil { // else helm has not run
		hide = append(hide, secrets(set, false)...)
	}
	slices.SortFunc(hide, func(a, b string) int { return cmp.Compare(len(b), len(a)) }) // one may be a part of another
	for _, s := range hide {
		if len(s) < 2 {
			continue
		}
		said = strings.ReplaceAll(said, s, hidden)
		said = strings.ReplaceAll(said, base64.StdEncoding.EncodeToString([]byte(s)), hidden)
	}
	return said
}
