// Package servertlstest makes certificates for tests.
package servertlstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// Authority is a certificate authority that is good for an hour.
type Authority struct {
	Cert *x509.Certificate
	PEM  []byte // of Cert
	key  *ecdsa.PrivateKey
}

// New makes an Authority.
func New(t testing.TB, name string) *Authority {
	t.Helper()
	a := &Authority{}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	a.key = newKey(t)
	raw, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err == nil {
		a.Cert, err = x509.ParseCertificate(raw)
	}
	if err != nil {
		t.Fatalf("make an authority: %v", err)
	}
	a.PEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("make a key: %v", err)
	}
	return key
}

// Issue returns a certificate and its key, both PEM, that a server at 127.0.0.1 or a client may show. The name is the
// common name and a DNS name.
func (a *Authority) Issue(t testing.TB, name string) (cert, key []byte) {
	t.Helper()
	own := newKey(t)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatalf("make a certificate: %v", err)
	}
	raw, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.Cert, own.Public(), a.key)
	if err != nil {
		t.Fatalf("make a certificate: %v", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		t.Fatalf("write a key: %v", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}
