// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(runChild())
	}
	code := m.Run()
	closeSharedCluster()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

const token = "the-client's-own"

// bench is a small API server with the proxy before it.
type bench struct {
	server *server
	api    *API
	config *rest.Config
	http   *http.Client
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{server: newServer(t)}
	var err error
	if b.api, err = NewAPI(b.server.config()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.api.Close(); err != nil {
			t.Error(err)
		}
	})
	b.config = b.api.Config(&rest.Config{BearerToken: token, UserAgent: "tester/1"})
	if b.http, err = rest.HTTPClientFor(b.config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { utilnet.CloseIdleConnectionsFor(b.http.Transport) })
	return b
}

// clientset encodes as its content type says.
func (b *bench) clientset(t *testing.T, contentType string) kubernetes.Interface {
	t.Helper()
	config := rest.CopyConfig(b.config)
	config.ContentType, config.QPS = contentType, -1
	client, err := kubernetes.NewForConfigAndClient(config, b.http)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// soon bounds what a test waits for, so that a mistake is a failure and not a hang.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// closeIdle leaves no connection of a client behind.
func closeIdle(client kubernetes.Interface) {
	if made, ok := client.CoreV1().RESTClient().(*rest.RESTClient); ok {
		utilnet.CloseIdleConnectionsFor(made.Client.Transport)
	}
}
