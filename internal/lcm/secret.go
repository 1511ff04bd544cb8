package lcm

import (
	"encoding/json"
	"log/slog"
	"regexp"
	"strings"
)

// Redacted is what stands where a secret was.
const Redacted = "[redacted]"

// Secret is a text that never shows itself: it prints, logs and marshals as [Redacted]. Reveal gives the text.
type Secret string

// Reveal returns the text itself, for the one place that must send or seal it.
func (s Secret) Reveal() string { return string(s) }

// String implements fmt.Stringer.
func (s Secret) String() string { return Redacted }

// GoString implements fmt.GoStringer.
func (s Secret) GoString() string { return Redacted }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(Redacted) }

// MarshalJSON implements json.Marshaler.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(Redacted) }

// secretWords are the parts of a key that mark its value as a secret.
var secretWords = []string{"password", "passwd", "passphrase", "secret", "token", "credential", "private_key", "privatekey", "apikey", "api_key", "client_key", "clientkey", "ssh_key", "sshkey", "access_key", "accesskey",
	"adminpass", "admin_pass"}

// notSecret are keys that hold such a word and name no secret.
var notSecret = map[string]bool{"oidc_token_url": true, "token_url": true, "tokenendpoint": true, "token_endpoint": true, "secret_uuid": true, "application_credential_id": true, "application_credential_name": true}

// SecretKey tells whether a key of a free-form map names a secret, whatever its case.
func SecretKey(key string) bool {
	k := strings.ToLower(strings.ReplaceAll(key, "-", "_"))
	if notSecret[k] {
		return false
	}
	if k == "pwd" || k == "pass" {
		return true
	}
	for _, w := range secretWords {
		if strings.Contains(k, w) {
			return true
		}
	}
	return false
}

// userinfo finds the password that a URL carries, as proxies' URLs do.
var userinfo = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^/\s:@]*:)[^/\s]*@`)

// RedactText returns the text with the password of every URL in it [Redacted].
func RedactText(s string) string {
	if !strings.Contains(s, "://") {
		return s
	}
	return userinfo.ReplaceAllString(s, "${1}"+Redacted+"@")
}

// assignment finds name=value in an element of a list, as helmparameter has them: several, if commas part them. What a
// backslash or braces protect belongs to the value.
var assignment = regexp.MustCompile(`(^|,)([A-Za-z0-9_.\[\]-]+)=((?:\\.|\{[^}]*\}|[^,\\])*)`)

// redactElement is [Redact] of a text in a list.
func redactElement(s string) string {
	return assignment.ReplaceAllStringFunc(RedactText(s), func(a string) string {
		m := assignment.FindStringSubmatch(a)
		if m == nil || m[3] == "" || !SecretKey(m[2]) {
			return a
		}
		return m[1] + m[2] + "=" + Redacted
	})
}

// assigned returns the secrets in a text in a list.
func assigned(s string) []string {
	var out []string
	for _, m := range assignment.FindAllStringSubmatch(s, -1) {
		if SecretKey(m[2]) {
			out = append(out, m[3])
			if plain := strings.ReplaceAll(m[3], `\`, ""); plain != m[3] {
				out = append(out, plain)
			}
		}
	}
	return out
}

// Redact returns a deep copy of a JSON-shaped value (maps, slices, scalars) in which the value of every key that
// [SecretKey] knows is [Redacted], and so are the passwords of URLs and what elements of lists assign to such a key
// (name=value). Values that are empty or null stay.
func Redact(v any) any {
	switch t := v.(type) {
	case string:
		return RedactText(t)
	case map[string]any:
		return RedactMap(t)
	case []any:
		out := make([]any, len(t))
		for i, e := range t {
			if s, ok := e.(string); ok {
				out[i] = redactElement(s)
			} else {
				out[i] = Redact(e)
			}
		}
		return out
	default:
		return v
	}
}

// RedactMap is [Redact] of a map; nil stays nil.
func RedactMap(m map[string]any) map[string]any {
	if m == nil {
		return nil
	}
	out := make(map[string]any, len(m))
	for k, v := range m {
		if SecretKey(k) && v != nil && v != "" {
			out[k] = Redacted
			continue
		}
		out[k] = Redact(v)
	}
	return out
}

// Secrets returns the texts that stand under keys of secrets in a JSON-shaped value, or that elements of lists assign to them.
// Texts of less than four characters
// are left out: they would be found everywhere.
func Secrets(v any) []string {
	var out []string
	var walk func(v any, secret bool)
	walk = func(v any, secret bool) {
		switch t := v.(type) {
		case string:
			if secret && len(t) >= 4 {
				out = append(out, t)
			}
		case map[string]any:
			for k, e := range t {
				walk(e, secret || SecretKey(k))
			}
		case []any:
			for _, e := range t {
				walk(e, secret)
				if s, ok := e.(string); ok && !secret {
					for _, a := range assigned(s) {
						walk(a, true)
					}
				}
			}
		}
	}
	walk(v, false)
	return out
}
