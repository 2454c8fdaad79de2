// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// newIdentity names this process in the volumes that it makes: <milliseconds>-<0..9999>-<driver>, as in
// all volumes made so far, and -<node> after that in a process that serves one node.
func newIdentity(now time.Time, driverName, node string) string {
	identity := fmt.Sprintf("%d-%d-%s", now.UnixMilli(), rand.IntN(10000), driverName)
	if node == "" {
		return identity
	}
	return identity + "-" + node
}

// holderIdentity names this process in leases. Two processes on one host must not take each other's lease
// for their own, so the name of the host is not enough.
func holderIdentity(host string) string {
	return fmt.Sprintf("%s-%08x", wellknown.SanitizeLease(host), rand.Uint32())
}

// serviceAccountNamespace is where a pod finds the name of its namespace.
const serviceAccountNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// leaseNamespace is where leases live: as said, else the namespace of the pod, else "default".
func leaseNamespace(flagged, file string) string {
	if flagged != "" {
		return flagged
	}
	if namespace := os.Getenv("POD_NAMESPACE"); namespace != "" {
		return namespace
	}
	if data, err := os.ReadFile(file); err == nil {
		if namespace := strings.TrimSpace(string(data)); namespace != "" {
			return namespace
		}
	}
	return "default"
}

// SanitizedLease is the lease of the program that provisions for a driver: the driver's own name.
func SanitizedLease(driver string) string { return wellknown.SanitizeLease(driver) }

// SnapshotterLease is the lease of the program that takes a driver's snapshots.
func SnapshotterLease(driver string) string {
	return wellknown.SanitizeLease(wellknown.SnapshotterLease(driver))
}

// BinderLease is the lease of the one program that binds the snapshots of all drivers, whichever that is
// in a cluster.
const BinderLease = wellknown.BinderLease

// OwnBinderLease is the lease of the program that binds the snapshots of one driver. It must not be
// BinderLease: who binds for one driver would keep those out who bind for the others.
func OwnBinderLease(driver string) string {
	return wellknown.SanitizeLease(wellknown.BinderLease + "-" + driver)
}
