// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func TestServingCertificateIsTrusted(t *testing.T) {
	c, err := writeCredentials(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(c.servingCertFile, c.servingKeyFile)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.caPEM)
	for _, name := range []string{"127.0.0.1", "localhost"} {
		if _, err := ours.Verify(x509.VerifyOptions{Roots: pool, DNSName: name}); err != nil {
			t.Errorf("verifying for %s: %v", name, err)
		}
	}
	if _, err := ours.Verify(x509.VerifyOptions{Roots: pool, DNSName: "elsewhere.example"}); err == nil {
		t.Error("the certificate is good for any name")
	}
	other, err := newAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	stranger := x509.NewCertPool()
	stranger.AppendCertsFromPEM(other.certPEM)
	if _, err := ours.Verify(x509.VerifyOptions{Roots: stranger, DNSName: "localhost"}); err == nil {
		t.Error("the authority of another cluster vouches for this one")
	}
}

func TestCredentialFilesArePrivate(t *testing.T) {
	c, err := writeCredentials(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{c.servingKeyFile, c.accountKeyFile, c.tokenFile} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
	}
	data, err := os.ReadFile(c.accountKeyFile)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(data)
	if block == nil {
		t.Fatal("the account key is not PEM")
	}
	if _, err := x509.ParseECPrivateKey(block.Bytes); err != nil {
		t.Errorf("the account key: %v", err)
	}
}

func TestTokenFileMatchesTokens(t *testing.T) {
	tokens, file, err := newTokens()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(file)) {
		fields := strings.Split(strings.TrimSpace(line), ",")
		if len(fields) != 4 || tokens[fields[1]] != fields[0] || fields[3] != "system:masters" {
			t.Errorf("unexpected line for user %s", fields[min(1, len(fields)-1)])
		}
		seen[fields[0]] = true
	}
	if len(seen) != 3 {
		t.Errorf("got %d different tokens, want 3", len(seen))
	}
}

func TestWriteKubeconfigCanBeReadBack(t *testing.T) {
	path := t.TempDir() + "/kubeconfig"
	authority, err := newAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	config := &rest.Config{
		Host: "https://127.0.0.1:1", BearerToken: "secret",
		TLSClientConfig: rest.TLSClientConfig{CAData: authority.certPEM},
	}
	if err := WriteKubeconfig(path, config); err != nil {
		t.Fatal(err)
	}
	got, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if got.Host != config.Host || got.BearerToken != "secret" || string(got.CAData) != string(config.CAData) {
		t.Errorf("read back host %q and other credentials than were written", got.Host)
	}
}
