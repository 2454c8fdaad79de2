// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"fmt"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// hanging is a driver whose calls for claims of one class hang until the context ends.
type hanging struct {
	Driver
	served chan string
}

func (d hanging) CreateVolume(ctx context.Context, request *csi.CreateVolumeRequest) (*csi.Volume, error) {
	if request.GetParameters()["class"] == "bad" {
		<-ctx.Done()
		return nil, fault.New(fault.CreateVolume, ctx.Err())
	}
	d.served <- request.GetName()
	return &csi.Volume{VolumeId: request.GetName(), CapacityBytes: 1 << 30}, nil
}

// (B045) More claims of a class whose calls hang than there are workers. Catches one line for all classes.
func TestClassThatHangsHoldsUpNoOther(t *testing.T) {
	h := kit.New(t)
	served := make(chan string, 1)
	c := New(*NewOptions(), Deps{
		Client: h.API, Driver: hanging{served: served}, DriverName: kit.DriverName, Identity: "id-1", Capabilities: capability.Of([]capability.Plugin{csi.PluginCapability_Service_CONTROLLER_SERVICE}, csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME),
		Recorder: h.Recorder, Clock: clock.RealClock{}, Topology: h.Topology, Workers: 2,
		Claims: h.Stores.Claims, Volumes: h.Stores.Volumes, Classes: h.Stores.StorageClasses,
		RetryStart: h.RetryStart, RetryMax: h.RetryMax,
	})
	for _, name := range []string{"bad", "good"} {
		h.Put(kit.Class(name, func(c *storagev1.StorageClass) { c.Parameters["class"] = name }))
	}
	inClass := func(class string) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &class }
	}
	for i := range 5 {
		h.Put(kit.Claim(fmt.Sprint("bad-", i), inClass("bad")))
	}
	h.Put(kit.Claim("good", inClass("good")))
	for _, object := range h.Stores.Claims.All() {
		c.queue.Add(keyOf(object))
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = c.Run(ctx) }()
	<-served // hangs when the workers are all with the class that hangs
	stop()
	<-ended
}
