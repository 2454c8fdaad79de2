// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"fmt"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// Call is one RPC to the driver.
type Call struct {
	Arrived  time.Time
	Finished time.Time
	// Service and Method are the two halves of its full name.
	Service string
	Method  string
	// Name is what the request is about: the name of what is to be created, or the id of what is there.
	Name string
	// Code is the answer that the client got. It counts only if the call is finished.
	Code codes.Code
	// IsAnswered is false while there is no answer, and stays so when the client never got one.
	IsAnswered bool
	// Effect is the number of the effect, zero for what is none.
	Effect int
	// Faults are what the proxy did to it.
	Faults []string
}

// IsEffect says whether the call creates or deletes something at the driver.
func (c Call) IsEffect() bool {
	return strings.HasPrefix(c.Method, "Create") || strings.HasPrefix(c.Method, "Delete")
}

// CallMatch selects RPCs; what is empty fits all.
type CallMatch struct {
	// Method is the name of an RPC without its service.
	Method string
	// Name is a part of the name of the call.
	Name string
	// Only narrows it further. It is called by several calls at once.
	Only func(Call) bool
}

func (m CallMatch) matches(c Call) bool {
	return (m.Method == "" || m.Method == c.Method) && strings.Contains(c.Name, m.Name) && (m.Only == nil || m.Only(c))
}

// Failure is what a client is told instead of the driver's answer. The zero value tells nothing and breaks the
// connection, and with it all other calls on it, as the death of a driver does.
type Failure struct {
	Code    codes.Code
	Message string
}

func (f Failure) isLost() bool { return f.Code == codes.OK }

// named are requests that say in different ways what they are about.
var named = map[string]func() proto.Message{
	"CreateVolume":              func() proto.Message { return &csi.CreateVolumeRequest{} },
	"DeleteVolume":              func() proto.Message { return &csi.DeleteVolumeRequest{} },
	"CreateSnapshot":            func() proto.Message { return &csi.CreateSnapshotRequest{} },
	"DeleteSnapshot":            func() proto.Message { return &csi.DeleteSnapshotRequest{} },
	"ListSnapshots":             func() proto.Message { return &csi.ListSnapshotsRequest{} },
	"GetSnapshot":               func() proto.Message { return &csi.GetSnapshotRequest{} },
	"CreateVolumeGroupSnapshot": func() proto.Message { return &csi.CreateVolumeGroupSnapshotRequest{} },
	"DeleteVolumeGroupSnapshot": func() proto.Message { return &csi.DeleteVolumeGroupSnapshotRequest{} },
	"ControllerPublishVolume":   func() proto.Message { return &csi.ControllerPublishVolumeRequest{} },
	"ControllerUnpublishVolume": func() proto.Message { return &csi.ControllerUnpublishVolumeRequest{} },
	"ControllerGetVolume":       func() proto.Message { return &csi.ControllerGetVolumeRequest{} },
	"ControllerModifyVolume":    func() proto.Message { return &csi.ControllerModifyVolumeRequest{} },
	"ControllerExpandVolume":    func() proto.Message { return &csi.ControllerExpandVolumeRequest{} },
	"NodeStageVolume":           func() proto.Message { return &csi.NodeStageVolumeRequest{} },
	"NodeUnstageVolume":         func() proto.Message { return &csi.NodeUnstageVolumeRequest{} },
	"NodePublishVolume":         func() proto.Message { return &csi.NodePublishVolumeRequest{} },
	"NodeUnpublishVolume":       func() proto.Message { return &csi.NodeUnpublishVolumeRequest{} },
}

// readCall reads what an RPC asks for. What is not known to the CSI specification has no name, and passes like the rest.
func readCall(fullMethod string, request []byte) Call {
	service, method, _ := strings.Cut(strings.TrimPrefix(fullMethod, "/"), "/")
	c := Call{Arrived: time.Now(), Service: service, Method: method}
	newMessage, ok := named[method]
	if !ok {
		return c
	}
	message := newMessage()
	if proto.Unmarshal(request, message) != nil {
		return c
	}
	switch m := message.(type) {
	case interface{ GetName() string }:
		c.Name = m.GetName()
	case interface{ GetSnapshotId() string }:
		c.Name = m.GetSnapshotId()
	case interface{ GetGroupSnapshotId() string }:
		c.Name = m.GetGroupSnapshotId()
	case interface{ GetVolumeId() string }:
		c.Name = m.GetVolumeId()
	}
	return c
}

// frame is a message that nobody looks into.
type frame struct{ content []byte }

// rawCodec passes messages as bytes, under the name of the encoding that they are in.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, fmt.Errorf("passing on a %T instead of bytes", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(f.content)}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return fmt.Errorf("taking bytes into a %T", v)
	}
	f.content = data.Materialize()
	return nil
}
