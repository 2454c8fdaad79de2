// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// attaching is a driver whose volumes are attached: the example driver, which has no use for that, and this one word more.
type attaching struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	identity   csi.IdentityClient
	controller csi.ControllerClient
}

// startAttaching lets a provisioner meet it, by the flag that is returned.
func (w *world) startAttaching() string {
	w.Helper()
	connection, err := grpc.NewClient("unix://"+w.cast.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	w.mustNot(err)
	path := filepath.Join(w.cast.Dir(), "attach.sock")
	listener, err := (&net.ListenConfig{}).Listen(w.ctx, "unix", path)
	w.mustNot(err)
	server := grpc.NewServer()
	a := attaching{identity: csi.NewIdentityClient(connection), controller: csi.NewControllerClient(connection)}
	csi.RegisterIdentityServer(server, a)
	csi.RegisterControllerServer(server, a)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	w.after = append(w.after, func() {
		server.Stop()
		w.mustNot(<-done)
		w.mustNot(connection.Close())
	})
	return "--csi-address=" + path
}

func (a attaching) ControllerGetCapabilities(ctx context.Context, r *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	answer, err := a.controller.ControllerGetCapabilities(ctx, r)
	if err == nil {
		answer.Capabilities = append(answer.Capabilities, &csi.ControllerServiceCapability{Type: &csi.ControllerServiceCapability_Rpc{
			Rpc: &csi.ControllerServiceCapability_RPC{Type: csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME},
		}})
	}
	return answer, err
}

func (a attaching) Probe(ctx context.Context, r *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return a.identity.Probe(ctx, r)
}

func (a attaching) GetPluginInfo(ctx context.Context, r *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return a.identity.GetPluginInfo(ctx, r)
}

func (a attaching) GetPluginCapabilities(ctx context.Context, r *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return a.identity.GetPluginCapabilities(ctx, r)
}

func (a attaching) CreateVolume(ctx context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	return a.controller.CreateVolume(ctx, r)
}

func (a attaching) DeleteVolume(ctx context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	return a.controller.DeleteVolume(ctx, r)
}

func (a attaching) GetCapacity(ctx context.Context, r *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	return a.controller.GetCapacity(ctx, r)
}

// attach says that a volume is attached, until what is returned is called.
func (w *world) attach(volume string) (detach func()) {
	w.Helper()
	attachments := w.kube.StorageV1().VolumeAttachments()
	w.must(attachments.Create(w.ctx, &storagev1.VolumeAttachment{
		ObjectMeta: w.cluster("attached"),
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: w.driver, NodeName: "worker-1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To(volume)},
		},
	}, metav1.CreateOptions{}))
	return func() { w.mustNot(attachments.Delete(w.ctx, w.ns+"-attached", metav1.DeleteOptions{})) }
}
