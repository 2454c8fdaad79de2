// SPDX-License-Identifier: Apache-2.0

// Package kit owns the world that rooms are tested in: an API server in memory, caches that mirror it, a
// scripted driver that keeps what it made, a fake clock, a deterministic scheduler in place of queues,
// and a runner that ends the process after every single effect.
//
// It must not know any room; rooms' tests hand it functions. It is imported from _test.go files only.
//
// It stands around every walk: it raises the events, takes the effects, and writes both down in order.
package kit

import (
	"crypto/sha256"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// DriverName is the driver that builders and the fake driver speak of.
const DriverName = "tandem.csi.example"

// Namespace is where builders put what has a namespace.
const Namespace = "default"

// UIDOf is the UID that builders and the API server give to the nth object of a kind under a name; the
// first is 0. It depends on nothing else, so that runs can be compared.
func UIDOf(plural, namespace, name string, nth int) types.UID {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%s#%d", plural, namespace, name, nth))
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
}
