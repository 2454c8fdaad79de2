// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const pollInterval = 100 * time.Millisecond

// healthPath is where a part says that it can work. The API server's own readiness includes etcd.
var healthPath = map[Part]string{
	Etcd:              "/health",
	APIServer:         "/readyz",
	ControllerManager: "/healthz",
	Scheduler:         "/readyz",
}

var errEnded = errors.New("it ended")

// awaitReady asks the part until it says yes, and fails as soon as its process has ended. The process is looked at
// after the answer too: on a port that we lost in a race, somebody else's part answers.
func (c *Cluster) awaitReady(ctx context.Context, part Part, p *process) error {
	client := c.probeClient()
	defer client.CloseIdleConnections()
	return poll(ctx, func(ctx context.Context) (bool, error) {
		err := c.probe(ctx, client, part)
		if !p.isRunning() {
			return true, fmt.Errorf("%w: %w", errEnded, orExitedCleanly(p.err))
		}
		return err == nil, err
	})
}

func orExitedCleanly(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// probeClient keeps no connections: a part that was killed and started again must be asked on a new one.
func (c *Cluster) probeClient() *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.credentials.caPEM)
	return &http.Client{
		Timeout: 5 * time.Second,
		Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		},
	}
}

func (c *Cluster) probe(ctx context.Context, client *http.Client, part Part) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.ports.url(part)+healthPath[part], nil)
	if err != nil {
		return err
	}
	if part == APIServer {
		request.Header.Set("Authorization", "Bearer "+c.config.BearerToken)
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s: %s", healthPath[part], response.Status, strings.TrimSpace(string(body)))
	}
	return nil
}

// awaitDefaults waits for what controllers make in every namespace: without a service account and the authority that
// goes with it, pods are refused.
func (c *Cluster) awaitDefaults(ctx context.Context) error {
	err := c.AwaitNamespace(ctx, metav1.NamespaceDefault)
	if err != nil {
		return &PartError{Part: ControllerManager, Err: err, Log: logTail(c.LogFile(ControllerManager))}
	}
	return nil
}

// AwaitNamespace waits until pods may be created in a namespace.
func (c *Cluster) AwaitNamespace(ctx context.Context, namespace string) error {
	core := c.clientset.CoreV1()
	err := poll(ctx, func(ctx context.Context) (bool, error) {
		if _, err := core.ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{}); err != nil {
			return false, err
		}
		_, err := core.ConfigMaps(namespace).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("waiting for the service account of namespace %s: %w", namespace, err)
	}
	return nil
}

// poll asks until done, or until the context ends; then it tells the last reason for not being done.
func poll(ctx context.Context, ask func(context.Context) (done bool, err error)) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	var reason error
	for {
		done, err := ask(ctx)
		if done {
			return err
		}
		// A reason from before the end says more than "context deadline exceeded" does.
		if ctx.Err() == nil || reason == nil {
			reason = err
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), reason)
		case <-ticker.C:
		}
	}
}
