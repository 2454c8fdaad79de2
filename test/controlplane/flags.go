// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

const host = "127.0.0.1"

// ports holds a port for each part, and one more for etcd's peers.
type ports struct {
	etcdPeer int
	serving  map[Part]int
}

func (p ports) url(part Part) string {
	if part == Etcd {
		return fmt.Sprintf("http://%s:%d", host, p.serving[part])
	}
	return fmt.Sprintf("https://%s:%d", host, p.serving[part])
}

func choosePorts() (ports, error) {
	chosen := ports{serving: map[Part]int{}}
	taken := map[int]bool{}
	next := func() (int, error) {
		port, err := freePort(taken)
		taken[port] = true
		return port, err
	}
	var err error
	if chosen.etcdPeer, err = next(); err != nil {
		return ports{}, err
	}
	for _, part := range []Part{Etcd, APIServer, ControllerManager, Scheduler} {
		if chosen.serving[part], err = next(); err != nil {
			return ports{}, err
		}
	}
	return chosen, nil
}

// freePort looks below the range from which kernels take ports for outgoing connections: a part that was killed must
// get its port back, and a port from that range may have become the local end of somebody's connection meanwhile.
func freePort(taken map[int]bool) (int, error) {
	const lowest, highest, attempts = 12000, 32000, 200
	var last error
	for range attempts {
		port := lowest + rand.IntN(highest-lowest)
		if taken[port] {
			continue
		}
		listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			last = err
			continue
		}
		return port, listener.Close()
	}
	return 0, fmt.Errorf("finding a free port: %w", last)
}

func (c *Cluster) args(part Part) ([]string, error) {
	var args []string
	switch part {
	case Etcd:
		args = c.etcdArgs()
	case APIServer:
		args = c.apiServerArgs()
	case ControllerManager:
		args = c.controllerManagerArgs()
	case Scheduler:
		args = c.schedulerArgs()
	default:
		return nil, fmt.Errorf("no part of the control plane is called %q", part)
	}
	return append(args, c.options.Args[part]...), nil
}

func (c *Cluster) etcdArgs() []string {
	client, peer := c.ports.url(Etcd), fmt.Sprintf("http://%s:%d", host, c.ports.etcdPeer)
	return []string{
		"--name=controlplane",
		"--data-dir=" + c.path("etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=controlplane=" + peer,
		// Data survives the death of the process, not that of the machine, which is all that tests need.
		"--unsafe-no-fsync",
		"--quota-backend-bytes=8589934592",
	}
}

func (c *Cluster) apiServerArgs() []string {
	args := []string{
		"--etcd-servers=" + c.ports.url(Etcd),
		"--bind-address=" + host,
		"--advertise-address=" + host,
		// A loopback address is refused as an endpoint of the kubernetes service, and nothing here uses that service.
		"--endpoint-reconciler-type=none",
		"--secure-port=" + strconv.Itoa(c.ports.serving[APIServer]),
		"--cert-dir=" + c.path("kube-apiserver"),
		"--client-ca-file=" + c.credentials.caFile,
		"--service-account-key-file=" + c.credentials.accountKeyFile,
		"--service-account-signing-key-file=" + c.credentials.accountKeyFile,
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--token-auth-file=" + c.credentials.tokenFile,
		"--authorization-mode=RBAC",
		"--service-cluster-ip-range=10.96.0.0/16",
		"--allow-privileged=true",
		"--max-requests-inflight=3000",
		"--max-mutating-requests-inflight=1500",
	}
	args = append(args, c.servingArgs()...)
	if c.options.AuditLog {
		args = append(args,
			"--audit-policy-file="+c.path("audit-policy.yaml"),
			"--audit-log-path="+c.path("audit.log"),
			"--audit-log-mode=batch",
			// A full buffer drops lines and an old file is rotated away; either would falsify the counts.
			"--audit-log-batch-buffer-size=200000",
			"--audit-log-maxsize=1000000",
		)
	}
	return args
}

func (c *Cluster) controllerManagerArgs() []string {
	args := []string{
		"--service-account-private-key-file=" + c.credentials.accountKeyFile,
		"--root-ca-file=" + c.credentials.caFile,
		// No kubelet reports for the simulated nodes; the node lifecycle controller would declare them dead.
		"--controllers=*,-node-lifecycle-controller,-node-ipam-controller",
	}
	return append(args, c.clientArgs(ControllerManager)...)
}

func (c *Cluster) schedulerArgs() []string { return c.clientArgs(Scheduler) }

// clientArgs are for the two parts that are clients of the API server. Their own default limits would be the
// ceiling of what is measured.
func (c *Cluster) clientArgs(part Part) []string {
	kubeconfig := c.path(string(part) + ".kubeconfig")
	return append([]string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--leader-elect=false",
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
		"--bind-address=" + host,
		"--secure-port=" + strconv.Itoa(c.ports.serving[part]),
	}, c.servingArgs()...)
}

func (c *Cluster) servingArgs() []string {
	return []string{
		"--tls-cert-file=" + c.credentials.servingCertFile,
		"--tls-private-key-file=" + c.credentials.servingKeyFile,
	}
}
