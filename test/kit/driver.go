// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/fault"
)

// Driver is a CSI driver in memory with the methods of driver.Conn. It keeps volumes and snapshots and is
// idempotent by name, as the CSI spec demands; a script makes it fail. Its failures are those of
// driver.Conn. Fields are set before it is used.
type Driver struct {
	// Capabilities is what it can do; NewDriver says everything.
	Capabilities capability.Set
	// Secrets, when set, must come with every call that takes secrets.
	Secrets map[string]string
	// Topology answers where a new volume is; nil takes the first preferred segment, else the first
	// requisite one.
	Topology func(*csi.CreateVolumeRequest) []*csi.Topology
	// Capacity answers GetCapacity; nil has 1 TiB everywhere.
	Capacity func(*csi.GetCapacityRequest) *csi.GetCapacityResponse
	// ReadyAfter is how many answers say of a new snapshot that it is not ready yet.
	ReadyAfter int
	// Omit, for new snapshots and volumes, answers without what some drivers leave out.
	Omit Omissions

	clock clock.PassiveClock
	log   *Log

	mu        sync.Mutex
	volumes   map[string]*storedVolume
	snapshots map[string]*storedSnapshot
	script    map[string][]*Reply
	calls     []Call
}

// Omissions are things that drivers forget to answer.
type Omissions struct {
	ContentSource, Topology, Size bool
}

// Call is one call as the driver saw it; the request is a copy, with secrets.
type Call struct {
	Method  string
	Request proto.Message
	Code    codes.Code
}

// Reply is a scripted answer to a call.
type Reply struct {
	// Code fails the call; OK answers as usual.
	Code codes.Code
	Text string
	// Done does the work first: the volume is made, the answer says otherwise.
	Done bool
	// Times is for how many calls; 0 means one.
	Times int
	// Meanwhile runs while the call is under way: somebody else is faster.
	Meanwhile func()
	// Volume and Snapshot edit a copy of the answer; what they return goes out, nil for none.
	Volume   func(*csi.Volume) *csi.Volume
	Snapshot func(*csi.Snapshot) *csi.Snapshot
}

// NewDriver makes an empty driver that can do everything.
func NewDriver(clk clock.PassiveClock, log *Log) *Driver {
	return &Driver{
		Capabilities: Everything(), clock: clk, log: log,
		volumes: map[string]*storedVolume{}, snapshots: map[string]*storedSnapshot{}, script: map[string][]*Reply{},
	}
}

// Everything is the set of all capabilities.
func Everything() capability.Set {
	var plugin []capability.Plugin
	for p := range csi.PluginCapability_Service_Type_name {
		plugin = append(plugin, capability.Plugin(p))
	}
	var controller []capability.Controller
	for c := range csi.ControllerServiceCapability_RPC_Type_name {
		controller = append(controller, capability.Controller(c))
	}
	return capability.Of(plugin, controller...)
}

// Next scripts the answers to the next calls of a method, such as "CreateVolume", in order.
func (d *Driver) Next(method string, replies ...Reply) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, reply := range replies {
		reply.Times = max(reply.Times, 1)
		d.script[method] = append(d.script[method], &reply)
	}
}

// Calls are all calls of the given methods, or all, in order.
func (d *Driver) Calls(methods ...string) []Call {
	d.mu.Lock()
	defer d.mu.Unlock()
	var found []Call
	for _, c := range d.calls {
		if len(methods) == 0 || slices.Contains(methods, c.Method) {
			found = append(found, c)
		}
	}
	return found
}

// Inventory lists what the driver holds, a line each, sorted.
func (d *Driver) Inventory() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	lines := []string{}
	for _, v := range d.volumes {
		lines = append(lines, "volume "+v.request.GetName()+v.source())
	}
	for _, s := range d.snapshots {
		lines = append(lines, "snapshot "+s.name+" of "+s.answer.GetSourceVolumeId())
	}
	slices.Sort(lines)
	return lines
}

// invocation is one call on its way through the driver.
type invocation struct {
	op      fault.Operation
	request proto.Message
	subject string
	secrets map[string]string
	// takesSecrets tells that the call has a place for secrets.
	takesSecrets bool
}

// do runs a call under the script, the log and the rules of processes.
func (d *Driver) do(ctx context.Context, in invocation, work func(*Reply) error) error {
	line := strings.TrimSpace("driver " + string(in.op) + " " + in.subject)
	lost := status.Error(codes.DeadlineExceeded, "context deadline exceeded")
	err := d.log.effect(ctx, line, lost, func() (string, error) {
		err := d.answer(in, work)
		return " → " + d.note(in, err).String(), err
	})
	if state := status.FromContextError(err); err != nil && state.Code() != codes.Unknown {
		err = state.Err()
	}
	if failure := fault.New(in.op, err); failure != nil {
		return failure
	}
	return nil
}

func (d *Driver) answer(in invocation, work func(*Reply) error) error {
	reply := d.take(string(in.op))
	if reply.Meanwhile != nil {
		reply.Meanwhile()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if in.takesSecrets && d.Secrets != nil && !sameMap(in.secrets, d.Secrets) {
		return status.Error(codes.Unauthenticated, "wrong or missing secrets")
	}
	if reply.Code != codes.OK && !reply.Done {
		return status.Error(reply.Code, reply.Text)
	}
	if err := work(reply); err != nil {
		return err
	}
	if reply.Code != codes.OK {
		return status.Error(reply.Code, reply.Text)
	}
	return nil
}

func (d *Driver) take(method string) *Reply {
	d.mu.Lock()
	defer d.mu.Unlock()
	queue := d.script[method]
	if len(queue) == 0 {
		return &Reply{}
	}
	reply := queue[0]
	if reply.Times--; reply.Times == 0 {
		d.script[method] = queue[1:]
	}
	return reply
}

func (d *Driver) note(in invocation, err error) codes.Code {
	code := status.Code(err)
	if known := fault.Of(err); known != nil {
		code = known.Code
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, Call{Method: string(in.op), Request: proto.Clone(in.request), Code: code})
	return code
}

// GetCapacity has the same meaning as in driver.Conn.
func (d *Driver) GetCapacity(ctx context.Context, request *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	var answer *csi.GetCapacityResponse
	in := invocation{op: fault.GetCapacity, request: request, subject: segmentText(request.GetAccessibleTopology())}
	err := d.do(ctx, in, func(*Reply) error {
		answer = &csi.GetCapacityResponse{AvailableCapacity: 1 << 40}
		if d.Capacity != nil {
			answer = d.Capacity(request)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

func segmentText(t *csi.Topology) string {
	var parts []string
	for k, v := range t.GetSegments() {
		parts = append(parts, fmt.Sprintf("%s=%s", k, v))
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

func sameMap(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}
