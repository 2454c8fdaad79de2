// SPDX-License-Identifier: Apache-2.0

package script

import (
	"context"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// call is what rules match on.
type call struct {
	service  string
	method   string
	subjects []string
}

// Faults returns the interceptor that plays the script. Resolve turns the id
// of a volume or snapshot into its name, so that rules can match on names
// where only ids are sent.
func (s *Script) Faults(resolve func(id string) string) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		c := describe(info.FullMethod, req, resolve)
		leave, err := s.before(ctx, c)
		if err != nil {
			return nil, err
		}
		defer leave()
		resp, err := next(ctx, req)
		if err != nil {
			return nil, err
		}
		return s.after(ctx, c, req, resp)
	}
}

// before plays what comes ahead of the work. The returned function gives up
// the places taken in limits.
func (s *Script) before(ctx context.Context, c call) (func(), error) {
	if len(s.take(c, true, Crash)) > 0 {
		s.crash()
	}
	for _, r := range s.take(c, true, Fail) {
		return nil, r.failure()
	}
	for _, r := range s.take(c, true, Hang) {
		if err := r.hold(ctx); err != nil {
			return nil, err
		}
	}
	leave, err := s.enter(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, r := range s.take(c, false, Lag) {
		r.lag()
	}
	for _, r := range s.take(c, false, Work) {
		s.work(r, c)
	}
	return leave, nil
}

// enter takes a place in each limit that covers the call.
func (s *Script) enter(ctx context.Context, c call) (func(), error) {
	var slots []chan struct{}
	leave := func() {
		for _, slot := range slots {
			<-slot
		}
	}
	for _, r := range s.take(c, false, Limit) {
		select {
		case r.slots <- struct{}{}:
			slots = append(slots, r.slots)
		case <-r.released:
		case <-ctx.Done():
			leave()
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
	return leave, nil
}

// after plays what comes behind work that succeeded.
func (s *Script) after(ctx context.Context, c call, req, resp any) (any, error) {
	if len(s.take(c, true, CommitCrash)) > 0 {
		s.crash()
	}
	for _, r := range s.take(c, true, CommitFail) {
		return nil, r.failure()
	}
	for _, r := range s.take(c, true, CommitHang) {
		if err := r.hold(ctx); err != nil {
			return nil, err
		}
	}
	for _, r := range s.take(c, false, Distort) {
		distortions[r.Distortion](req, resp)
	}
	return resp, nil
}

func (r *rule) failure() error {
	message := r.Message
	if message == "" {
		message = "scripted " + r.Code.String()
	}
	return status.Error(r.Code, message)
}

// lag does not look at the caller: the work is done even if it has gone.
func (r *rule) lag() {
	timer := time.NewTimer(r.Duration)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.released:
	}
}

// work does not look at the caller either, and is done once for each object.
func (s *Script) work(r *rule, c call) {
	object := strings.Join(c.subjects, " ")
	s.mu.Lock()
	worked := r.worked[object]
	s.mu.Unlock()
	if worked {
		return
	}
	select {
	case r.slots <- struct{}{}:
		r.lag()
		<-r.slots
	case <-r.released:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.worked[object] = true
}

// hold waits until the duration is over, the rule is released or the caller
// has given up; only the last is an error.
func (r *rule) hold(ctx context.Context) error {
	var over <-chan time.Time
	if r.Duration > 0 {
		timer := time.NewTimer(r.Duration)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
	case <-r.released:
	case <-ctx.Done():
		return status.Error(codes.Canceled, "the caller gave up a call that was held")
	}
	return nil
}

// distortions spoil an answer in place: answers are made for one call only.
var distortions = map[Distortion]func(req, resp any){
	NoVolume: func(_, resp any) {
		if r, ok := resp.(*csi.CreateVolumeResponse); ok {
			r.Volume = nil
		}
	},
	NoVolumeID:      onVolume(func(_ *csi.CreateVolumeRequest, v *csi.Volume) { v.VolumeId = "" }),
	NoContentSource: onVolume(func(_ *csi.CreateVolumeRequest, v *csi.Volume) { v.ContentSource = nil }),
	TooSmall: onVolume(func(q *csi.CreateVolumeRequest, v *csi.Volume) {
		v.CapacityBytes = max(1, q.GetCapacityRange().GetRequiredBytes()/2)
	}),
	NoSnapshot: func(_, resp any) {
		if r, ok := resp.(*csi.CreateSnapshotResponse); ok {
			r.Snapshot = nil
		}
	},
	NoSnapshotID: func(_, resp any) {
		if r, ok := resp.(*csi.CreateSnapshotResponse); ok && r.Snapshot != nil {
			r.Snapshot.SnapshotId = ""
		}
	},
}

// onVolume skips answers that another rule has left without a volume.
func onVolume(spoil func(*csi.CreateVolumeRequest, *csi.Volume)) func(req, resp any) {
	return func(req, resp any) {
		q, asked := req.(*csi.CreateVolumeRequest)
		r, answered := resp.(*csi.CreateVolumeResponse)
		if asked && answered && r.Volume != nil {
			spoil(q, r.Volume)
		}
	}
}

// knownMethod accepts the short name of any RPC; empty stands for all.
func knownMethod(name string) bool {
	if name == "" {
		return true
	}
	for _, service := range []grpc.ServiceDesc{csi.Identity_ServiceDesc, csi.Controller_ServiceDesc, csi.Node_ServiceDesc} {
		for _, m := range service.Methods {
			if m.MethodName == name {
				return true
			}
		}
	}
	return false
}

// describe finds out what a call is about.
func describe(fullMethod string, req any, resolve func(id string) string) call {
	path := strings.Split(strings.TrimPrefix(fullMethod, "/"), "/")
	c := call{method: path[len(path)-1], service: strings.TrimPrefix(path[0], "csi.v1.")}
	if r, ok := req.(interface{ GetName() string }); ok {
		c.subjects = append(c.subjects, r.GetName())
	}
	var ids []string
	if r, ok := req.(interface{ GetVolumeId() string }); ok {
		ids = append(ids, r.GetVolumeId())
	}
	if r, ok := req.(interface{ GetSnapshotId() string }); ok {
		ids = append(ids, r.GetSnapshotId())
	}
	if r, ok := req.(interface{ GetSourceVolumeId() string }); ok {
		ids = append(ids, r.GetSourceVolumeId())
	}
	for _, id := range ids {
		if id != "" {
			c.subjects = append(c.subjects, id, resolve(id))
		}
	}
	if r, ok := req.(*csi.GetCapacityRequest); ok {
		for k, v := range r.GetAccessibleTopology().GetSegments() {
			c.subjects = append(c.subjects, k+"="+v)
		}
	}
	return c
}
