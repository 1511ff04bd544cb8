package httpapi

import (
	"crypto/x509"
	"net/http"
	"strings"

	"github.com/seed-f1a0ccf1/vnfm/internal/lcm"
)

// CertificateUser is a caller who is known by a client certificate.
type CertificateUser struct {
	Name      string
	ProjectID string
	Role      lcm.Role
}

// MutualTLS knows callers by the client certificates that the listener has verified (SOL013 v2.6.1 §8.3.3). Users are
// found by "dns:", "email:", "uri:" or "ip:" and a subject alternative name, by "cn:" and the subject's common name, or
// by "subject:" and the whole subject (RFC 2253, "subject:CN=nfvo,O=Operator"), in this order.
type MutualTLS struct {
	Users map[string]CertificateUser
}

// CertificateKinds are the words that may stand before the colon of a MutualTLS' keys.
func CertificateKinds() []string { return []string{"dns", "email", "uri", "ip", "cn", "subject"} }

// Authenticate implements Authenticator.
func (m MutualTLS) Authenticate(r *http.Request) (lcm.Scope, error) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || len(r.TLS.VerifiedChains[0]) == 0 {
		return lcm.Scope{}, &Unauthorized{Detail: needsAuthentication, Absent: true}
	}
	leaf := r.TLS.VerifiedChains[0][0]
	for _, name := range certificateNames(leaf) {
		if u, ok := m.Users[name]; ok {
			return granted(lcm.Scope{ProjectID: u.ProjectID, User: u.Name}, u.Role), nil
		}
	}
	// What else the request brings may name a caller.
	who := clip(leaf.Subject.String())
	return lcm.Scope{}, &Unauthorized{Detail: "The client certificate of " + who + " is nobody's here.", Absent: true}
}

// certificateNames are the names that a certificate is known by, the most particular first.
func certificateNames(c *x509.Certificate) []string {
	var out []string
	for _, n := range c.DNSNames {
		out = append(out, "dns:"+strings.ToLower(n))
	}
	for _, n := range c.EmailAddresses {
		out = append(out, "email:"+strings.ToLower(n))
	}
	for _, n := range c.URIs {
		out = append(out, "uri:"+n.String())
	}
	for _, n := range c.IPAddresses {
		out = append(out, "ip:"+n.String())
	}
	if c.Subject.CommonName != "" {
		out = append(out, "cn:"+c.Subject.CommonName)
	}
	return append(out, "subject:"+c.Subject.String())
}
