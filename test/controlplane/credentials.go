// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The users of the token file. The parts have names of their own, so that an audit log tells them apart; all are in
// system:masters, because the roles of the parts exist only once the API server has had time to write them.
const (
	adminUser             = "admin"
	controllerManagerUser = "system:kube-controller-manager"
	schedulerUser         = "system:kube-scheduler"
)

const certificateLife = 365 * 24 * time.Hour

// credentials are the files that let the parts trust each other, and the secrets that we need ourselves.
type credentials struct {
	caFile          string
	caPEM           []byte
	servingCertFile string
	servingKeyFile  string
	accountKeyFile  string
	tokenFile       string
	tokens          map[string]string
}

// writeCredentials makes a new authority, a serving certificate for all parts, a key that signs service account
// tokens, and the token file.
func writeCredentials(dir string) (credentials, error) {
	folder := filepath.Join(dir, "credentials")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return credentials{}, err
	}
	c := credentials{
		caFile:          filepath.Join(folder, "ca.crt"),
		servingCertFile: filepath.Join(folder, "serving.crt"),
		servingKeyFile:  filepath.Join(folder, "serving.key"),
		accountKeyFile:  filepath.Join(folder, "service-account.key"),
		tokenFile:       filepath.Join(folder, "tokens.csv"),
	}
	authority, err := newAuthority(time.Now())
	if err != nil {
		return credentials{}, err
	}
	serving, err := authority.issueServing(time.Now())
	if err != nil {
		return credentials{}, err
	}
	account, err := newKey()
	if err != nil {
		return credentials{}, err
	}
	var tokens []byte
	if c.tokens, tokens, err = newTokens(); err != nil {
		return credentials{}, err
	}
	c.caPEM = authority.certPEM
	for path, content := range map[string][]byte{
		c.caFile:          authority.certPEM,
		c.servingCertFile: serving.certPEM,
		c.servingKeyFile:  serving.keyPEM,
		c.accountKeyFile:  account.pem,
		c.tokenFile:       tokens,
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return credentials{}, err
		}
	}
	return c, nil
}

type key struct {
	private *ecdsa.PrivateKey
	pem     []byte
}

func newKey() (key, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return key{}, fmt.Errorf("generating a key: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return key{}, fmt.Errorf("encoding a key: %w", err)
	}
	return key{private: private, pem: pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})}, nil
}

// authority signs the serving certificate; its own key is never written down.
type authority struct {
	certificate *x509.Certificate
	certPEM     []byte
	key         key
}

type servingPair struct {
	certPEM []byte
	keyPEM  []byte
}

func newAuthority(now time.Time) (*authority, error) {
	private, err := newKey()
	if err != nil {
		return nil, err
	}
	template, err := newTemplate("csi-tandem test authority", now)
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.private.Public(), private.private)
	if err != nil {
		return nil, fmt.Errorf("signing the authority: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parsing the authority: %w", err)
	}
	return &authority{certificate: certificate, certPEM: encodeCertificate(der), key: private}, nil
}

func (a *authority) issueServing(now time.Time) (servingPair, error) {
	private, err := newKey()
	if err != nil {
		return servingPair{}, err
	}
	template, err := newTemplate("csi-tandem test control plane", now)
	if err != nil {
		return servingPair{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.IPAddresses = []net.IP{net.ParseIP(host), net.ParseIP("10.96.0.1")}
	template.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, private.private.Public(), a.key.private)
	if err != nil {
		return servingPair{}, fmt.Errorf("signing the serving certificate: %w", err)
	}
	return servingPair{certPEM: encodeCertificate(der), keyPEM: private.pem}, nil
}

func newTemplate(name string, now time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("choosing a serial number: %w", err)
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		// Clocks of containers may run a little behind.
		NotBefore: now.Add(-time.Hour),
		NotAfter:  now.Add(certificateLife),
	}, nil
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// newTokens returns the token of each user and the file in which the API server reads them.
func newTokens() (map[string]string, []byte, error) {
	tokens := map[string]string{}
	var file strings.Builder
	for _, user := range []string{adminUser, controllerManagerUser, schedulerUser} {
		secret := make([]byte, 24)
		if _, err := rand.Read(secret); err != nil {
			return nil, nil, fmt.Errorf("choosing a token: %w", err)
		}
		tokens[user] = hex.EncodeToString(secret)
		fmt.Fprintf(&file, "%s,%s,%s,system:masters\n", tokens[user], user, user)
	}
	return tokens, []byte(file.String()), nil
}
