// SPDX-License-Identifier: Apache-2.0

// Command snapshotter takes and deletes the snapshots of a CSI driver, and binds VolumeSnapshots to their
// contents. Called snapshot-controller it only binds, for the whole cluster and without a driver.
package main

import (
	"context"
	"os"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/csi-tandem/csi-tandem/pkg/sidecar"
)

// version is written by the linker.
var version = "unknown"

func main() {
	os.Exit(sidecar.Main(context.Background(), program(), os.Args, os.Stdout, os.Stderr))
}

func program() sidecar.Program {
	r := newRooms()
	return sidecar.Program{
		Name: name, Version: version, Component: "csi-snapshotter %s", Manifest: "deploy/snapshotter/rbac.yaml", Components: components(),
		Options: r.common, Gates: gates(), Missing: missing(), Retired: retired(), Presets: presets(), Rights: rights(),
		Groups:   []sidecar.FlagGroup{{Title: "Snapshots", Add: r.content.AddFlags}, {Title: "Binding", Add: r.binding.AddFlags}},
		Lease:    sidecar.SnapshotterLease,
		Requires: []csi.ControllerServiceCapability_RPC_Type{csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT},
		Validate: r.validate, WithoutDriver: r.withoutDriver, PerNode: r.isLocal, MustElect: r.mustElect, Setup: r.setup, Commands: r.commands(), Say: say,
	}
}
