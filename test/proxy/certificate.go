// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

const certificateLife = 30 * 24 * time.Hour

// identity is a serving certificate, and the authority by which clients trust it. Neither key is written down.
type identity struct {
	certificate tls.Certificate
	authority   []byte
}

func newIdentity(now time.Time) (identity, error) {
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return identity{}, fmt.Errorf("generating the authority's key: %w", err)
	}
	authority, err := newTemplate("csi-tandem proxy authority", now)
	if err != nil {
		return identity{}, err
	}
	authority.IsCA, authority.BasicConstraintsValid = true, true
	authority.KeyUsage = x509.KeyUsageCertSign
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		return identity{}, fmt.Errorf("signing the authority: %w", err)
	}

	servingKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return identity{}, fmt.Errorf("generating the serving key: %w", err)
	}
	serving, err := newTemplate("csi-tandem proxy", now)
	if err != nil {
		return identity{}, err
	}
	serving.KeyUsage = x509.KeyUsageDigitalSignature
	serving.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	serving.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	serving.DNSNames = []string{"localhost"}
	servingDER, err := x509.CreateCertificate(rand.Reader, serving, authority, servingKey.Public(), authorityKey)
	if err != nil {
		return identity{}, fmt.Errorf("signing the serving certificate: %w", err)
	}
	return identity{
		certificate: tls.Certificate{Certificate: [][]byte{servingDER}, PrivateKey: servingKey},
		authority:   pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authorityDER}),
	}, nil
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
