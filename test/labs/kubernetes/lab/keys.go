package lab

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity is how long certificates are good for; a lab that is left running is not to die of age.
const validity = 10 * 365 * 24 * time.Hour

// authority signs certificates.
type authority struct {
	cert    *x509.Certificate
	key     crypto.Signer
	certPEM []byte
}

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := newTemplate(pkix.Name{CommonName: name})
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make the certificate authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{cert: cert, key: key, certPEM: pemOf("CERTIFICATE", der)}, nil
}

// readAuthority reads what write has written.
func readAuthority(dir string) (*authority, error) {
	certPEM, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(certPEM)
	if block == nil {
		return nil, fmt.Errorf("%s/ca.crt is not PEM", dir)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read %s/ca.crt: %w", dir, err)
	}
	key, err := readKey(filepath.Join(dir, "ca.key"))
	if err != nil {
		return nil, err
	}
	return &authority{cert: cert, key: key, certPEM: certPEM}, nil
}

func (a *authority) write(dir string) error {
	key, err := keyPEM(a.key)
	if err != nil {
		return err
	}
	return writePair(dir, "ca", a.certPEM, key)
}

// issue makes a key and a certificate for it, both as PEM. With addresses, it may serve; it may always log in.
func (a *authority) issue(who pkix.Name, names []string, addresses []net.IP) (certPEM, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template, err := newTemplate(who)
	if err != nil {
		return nil, nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(names)+len(addresses) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		template.DNSNames, template.IPAddresses = names, addresses
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, private.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("make a certificate for %s: %w", who.CommonName, err)
	}
	key, err = keyPEM(private)
	return pemOf("CERTIFICATE", der), key, err
}

func newTemplate(who pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial, Subject: who,
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(validity), // clocks that are a little behind are no reason to refuse
	}, nil
}

// writeSigningKey makes the key that ServiceAccounts' tokens are signed with.
func writeSigningKey(path string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	raw, err := keyPEM(key)
	if err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o600)
}

func readKey(path string) (*ecdsa.PrivateKey, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, fmt.Errorf("%s is not PEM", path)
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return key, nil
}

// keyPEM writes a key in the form that all parts of Kubernetes read, signing keys among them.
func keyPEM(key crypto.Signer) ([]byte, error) {
	private, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, errors.New("not an ECDSA key")
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return nil, err
	}
	return pemOf("EC PRIVATE KEY", der), nil
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func writePair(dir, name string, cert, key []byte) error {
	return errors.Join(
		os.WriteFile(filepath.Join(dir, name+".crt"), cert, 0o600),
		os.WriteFile(filepath.Join(dir, name+".key"), key, 0o600))
}
