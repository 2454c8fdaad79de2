// SPDX-License-Identifier: Apache-2.0

// Command provisioner makes a PersistentVolume for each claim that asks a CSI driver for one, and deletes
// it when the claim has let it go.
package main

import (
	"context"
	"os"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
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
		Name: "provisioner", Version: version, Component: "%s", Manifest: "deploy/provisioner/rbac.yaml", Components: components(),
		Options: options(), Gates: gates(), Retired: retired(), Rights: rights(),
		Groups: []sidecar.FlagGroup{{Title: "Volumes", Add: r.claim.AddFlags}, {Title: "Sources", Add: r.source.AddFlags}, {Title: "Storage capacity", Add: r.capacity.AddFlags}, {Title: "Node deployment", Add: r.claim.AddLocalFlags}},
		Lease:  sidecar.SanitizedLease, IsMigrated: claim.IsMigrated, PerNode: r.isLocal, AsksPlace: true, Validate: r.validate, Inhabit: r.checkVariables, Setup: r.setup, Commands: r.commands(), Say: say,
	}
}
