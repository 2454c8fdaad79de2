// SPDX-License-Identifier: Apache-2.0

// Package server owns the CSI services: it checks requests against the CSI
// specification, translates them for the backend, and translates what comes
// back, errors included.
//
// It must not know where rules of a script come from, nor how the backend
// keeps its state.
//
// On the walk of one CSI call it stands in the middle: socket, log, refusals
// that need no thought (capability, secrets, a pending operation), faults of
// the script, then the method here, then the backend.
package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/csi-tandem/csi-tandem/examples/driver/backend"
	"github.com/csi-tandem/csi-tandem/examples/driver/inflight"
	"github.com/csi-tandem/csi-tandem/examples/driver/mount"
	"github.com/csi-tandem/csi-tandem/examples/driver/script"
)

// Options is what the services are made from.
type Options struct {
	Name    string
	Version string
	// Node is the node id that NodeGetInfo reports; Topology has the segment
	// of every node. Without a topology the driver claims none.
	Node     string
	Topology map[string]backend.Segment
	// Features are the capabilities that are claimed, see AllFeatures.
	Features Features
	// Secrets must be part of every call in SecretMethods.
	Secrets       map[string]string
	SecretMethods []string
	Backend       *backend.Backend
	Mount         mount.Mode
	// Devices makes block volumes appear as devices, which pods want, and not as files.
	Devices bool
	Script  *script.Script
	Log     *script.Log
}

// Server implements the three services.
type Server struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedNodeServer

	options Options
	busy    inflight.Table
	turns   turns
}

// New makes a gRPC server with all services registered.
func New(o Options) (*grpc.Server, error) {
	if len(o.Topology) > 0 {
		if _, ok := o.Topology[o.Node]; !ok {
			return nil, fmt.Errorf("making server: node %q is not in the topology, which has %s",
				o.Node, strings.Join(slices.Sorted(maps.Keys(o.Topology)), ", "))
		}
	}
	s := &Server{options: o}
	g := grpc.NewServer(grpc.ChainUnaryInterceptor(
		o.Log.Record, s.gate, s.authenticate, s.serialize, o.Script.Faults(s.nameOf),
	))
	csi.RegisterIdentityServer(g, s)
	csi.RegisterControllerServer(g, s)
	csi.RegisterNodeServer(g, s)
	return g, nil
}

// nameOf finds the name of a volume or snapshot for the script.
func (s *Server) nameOf(id string) string {
	if v, ok := s.options.Backend.Volume(id); ok {
		return v.Name
	}
	if snap, ok := s.options.Backend.Snapshot(id); ok {
		return snap.Name
	}
	return ""
}

// authenticate refuses calls without the secrets that the driver insists on.
func (s *Server) authenticate(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if r, ok := req.(interface{ GetSecrets() map[string]string }); ok && slices.Contains(s.options.SecretMethods, method(info)) {
		given := r.GetSecrets()
		for _, k := range slices.Sorted(maps.Keys(s.options.Secrets)) {
			v, ok := given[k]
			if !ok {
				return nil, status.Errorf(codes.Unauthenticated, "the secret %q is missing", k)
			}
			if v != s.options.Secrets[k] {
				return nil, status.Errorf(codes.Unauthenticated, "the secret %q is wrong", k)
			}
		}
	}
	return next(ctx, req)
}

// serialize answers Aborted while another call for the same object is open,
// as the CSI specification wants it ("operation pending for volume").
func (s *Server) serialize(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	key := s.object(req)
	if key == "" {
		return next(ctx, req)
	}
	done, ok := s.busy.Begin(key)
	if !ok {
		return nil, status.Errorf(codes.Aborted, "an operation is pending: %s", key)
	}
	defer done()
	return next(ctx, req)
}

// object is what a call changes, or nothing. Creation is known by name and
// all later calls by id, so an existing object's id is turned into its name.
func (s *Server) object(req any) string {
	switch r := req.(type) {
	case *csi.CreateVolumeRequest:
		return named("volume", r.GetName())
	case *csi.CreateSnapshotRequest:
		return named("snapshot", r.GetName())
	case *csi.DeleteVolumeRequest:
		return named("volume", s.nameOf(r.GetVolumeId()))
	case *csi.ControllerModifyVolumeRequest:
		return named("volume", s.nameOf(r.GetVolumeId()))
	case *csi.DeleteSnapshotRequest:
		return named("snapshot", s.nameOf(r.GetSnapshotId()))
	case *csi.NodeStageVolumeRequest:
		return located(r.GetStagingTargetPath())
	case *csi.NodeUnstageVolumeRequest:
		return located(r.GetStagingTargetPath())
	case *csi.NodePublishVolumeRequest:
		return located(r.GetTargetPath())
	case *csi.NodeUnpublishVolumeRequest:
		return located(r.GetTargetPath())
	}
	return ""
}

// located is one key for all spellings of a path.
func located(path string) string {
	if path == "" {
		return ""
	}
	return named("path", filepath.Clean(path))
}

func named(kind, name string) string {
	if name == "" {
		return ""
	}
	return kind + " " + name
}

func method(info *grpc.UnaryServerInfo) string {
	return info.FullMethod[strings.LastIndexByte(info.FullMethod, '/')+1:]
}

// refusals maps the backend's reasons to the codes of the error tables in the
// CSI specification.
var refusals = []struct {
	reason error
	code   codes.Code
}{
	{backend.ErrInvalid, codes.InvalidArgument},
	{backend.ErrNotFound, codes.NotFound},
	{backend.ErrConflict, codes.AlreadyExists},
	{backend.ErrBusy, codes.Aborted},
	{backend.ErrExhausted, codes.ResourceExhausted},
	{backend.ErrRange, codes.OutOfRange},
	{backend.ErrInUse, codes.FailedPrecondition},
	{backend.ErrNotReady, codes.Unavailable},
}

func refusal(err error) error {
	for _, r := range refusals {
		if errors.Is(err, r.reason) {
			return status.Error(r.code, err.Error())
		}
	}
	return status.Error(codes.Internal, err.Error())
}

func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}
