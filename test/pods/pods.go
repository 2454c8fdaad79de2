// SPDX-License-Identifier: Apache-2.0

// Package pods holds the end-to-end tests of volumes in real pods: on nodes whose kubelets mount what the provisioner made,
// and where containers write and read it.
//
// It owns what a user of a pod sees: content, file systems and devices, access modes, groups, and that a volume outlives
// its pod and its node. It must not know how nodes run, nor repeat what simulated nodes show as well.
//
// It stands outside the walks, beside the other end-to-end tests. `make e2e-pods` runs it.
package pods
