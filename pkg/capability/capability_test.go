// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

func TestSet(t *testing.T) {
	var none Set
	if none.HasController() || none.HasTopology() || none.Has(csi.ControllerServiceCapability_RPC_CLONE_VOLUME) {
		t.Error("the zero value can do something")
	}
	answered := New(
		[]*csi.PluginCapability{
			{Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE}}},
			{}, // from a newer spec
		},
		[]*csi.ControllerServiceCapability{
			{Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: csi.ControllerServiceCapability_RPC_CLONE_VOLUME}}},
			{},
		})
	want := Of([]Plugin{csi.PluginCapability_Service_CONTROLLER_SERVICE}, csi.ControllerServiceCapability_RPC_CLONE_VOLUME)
	if !answered.Equal(want) || answered.String() != "CLONE_VOLUME CONTROLLER_SERVICE" {
		t.Errorf("got %s, want %s", answered, want)
	}
	if answered.Equal(none) || answered.HasTopology() || !answered.HasController() {
		t.Error("wrong answers")
	}
}
