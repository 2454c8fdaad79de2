// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// claimSet is what a driver says it can do. The CSI specification gives the
// same name to a few capabilities of different services, hence the prefixes.
type claimSet map[string]bool

// permitted maps each reason that csi-test gives for skipping to the claim
// that the skip would belie. Reasons that are not listed are no excuse, so
// that a new version of csi-test cannot skip unseen.
var permitted = map[string]string{
	"Controller Publish, UnpublishVolume not supported": "controller:PUBLISH_UNPUBLISH_VOLUME",
	"ControllerPublishVolume not supported":             "controller:PUBLISH_UNPUBLISH_VOLUME",
	"ControllerUnpublishVolume not supported":           "controller:PUBLISH_UNPUBLISH_VOLUME",
	"ControllerExpandVolume not supported":              "controller:EXPAND_VOLUME",
	"ControllerGetVolumeHealth not supported":           "controller:GET_VOLUME_HEALTH",
	"ControllerListVolumeHealth not supported":          "controller:LIST_VOLUME_HEALTH",
	"SNAPSHOT_ACCESSIBILITY_CONSTRAINTS not supported":  "plugin:SNAPSHOT_ACCESSIBILITY_CONSTRAINTS",
	"GroupControllerService not supported":              "plugin:GROUP_CONTROLLER_SERVICE",
	"VolumeGroupSnapshots not supported":                "plugin:GROUP_CONTROLLER_SERVICE",
	"NodeExpandVolume not supported":                    "node:EXPAND_VOLUME",
	"NodeGetVolumeHealth not supported":                 "node:GET_VOLUME_HEALTH",
	"NodeGetStorageHealth not supported":                "node:GET_STORAGE_HEALTH",
}

// pendingReason is the one spec that csi-test has switched off for everyone.
const pendingReason = "switched off in csi-test: pagination should detect volumes added between pages " +
	"and accept tokens when the last volume from a page is deleted"

// covers names the claim that a skip for this reason belies, or nothing.
func (c claimSet) covers(reason string) string {
	if c == nil || reason == pendingReason {
		return ""
	}
	claim, known := permitted[reason]
	if !known {
		return "what this spec tests"
	}
	if c[claim] {
		return claim
	}
	return ""
}

// greetPatience is short: a driver that is said to be there should answer at once.
const greetPatience = 5 * time.Second

// greet asks the driver for its name, since hundreds of specs that all fail to connect say less than one line.
func greet(ctx context.Context, address string) (name string, err error) {
	if !strings.HasPrefix(address, "unix:///") {
		return "", errors.New("this is not of the form unix:///absolute/path/of/a/socket")
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, greetPatience)
	defer cancel()
	about, err := csi.NewIdentityClient(conn).GetPluginInfo(ctx, &csi.GetPluginInfoRequest{})
	if err != nil {
		return "", fmt.Errorf("no driver answers GetPluginInfo there: %w", err)
	}
	return about.GetName(), nil
}

// claims asks the driver.
func claims(ctx context.Context, address string) (set claimSet, err error) {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	set = claimSet{}
	plugin, err := csi.NewIdentityClient(conn).GetPluginCapabilities(ctx, &csi.GetPluginCapabilitiesRequest{})
	if err != nil {
		return nil, fmt.Errorf("asking for capabilities: %w", err)
	}
	for _, c := range plugin.GetCapabilities() {
		set["plugin:"+c.GetService().GetType().String()] = true
	}
	controller, err := csi.NewControllerClient(conn).ControllerGetCapabilities(ctx, &csi.ControllerGetCapabilitiesRequest{})
	if err != nil {
		return nil, fmt.Errorf("asking for capabilities: %w", err)
	}
	for _, c := range controller.GetCapabilities() {
		set["controller:"+c.GetRpc().GetType().String()] = true
	}
	node, err := csi.NewNodeClient(conn).NodeGetCapabilities(ctx, &csi.NodeGetCapabilitiesRequest{})
	if err != nil {
		return nil, fmt.Errorf("asking for capabilities: %w", err)
	}
	for _, c := range node.GetCapabilities() {
		set["node:"+c.GetRpc().GetType().String()] = true
	}
	return set, nil
}
