// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
)

// controlSocket is the longest name of a socket of a cast.
const controlSocket = "control.sock"

// Roles says which driver a cast is to have.
type Roles struct {
	// Name is that of the example driver to start.
	Name string
	// Flags are more flags of the example driver.
	Flags []string
	// Topology has the segment of each node on which the example driver is. Without one it is on every node of the stage
	// and has no topology.
	Topology map[string]map[string]string
	// Node is the node that the driver and its sidecars are on, when there is a cast for each node: then Topology has
	// that node alone, and casts of the same name are the same driver.
	Node string
	// Socket is that of another driver, which runs already; then all of the above is left empty. It is taken to be on
	// every node that has no taint.
	Socket string
	// Capacity tells the scheduler to look at CSIStorageCapacity objects of the driver.
	Capacity bool
	// Env are variables of the sidecars, as a pod's specification would have them.
	Env []string
}

// Cast is a driver, and whichever sidecars have been started beside it.
type Cast struct {
	// Info is what the driver says about itself.
	Info Info
	// Socket is where the driver listens.
	Socket string
	// Driver and Control are the example driver's, and nil for another one.
	Driver  *Process
	Control *control.Client
	// Kubelet publishes volumes of pods.
	Kubelet *Kubelet

	stage    *Stage
	node     string
	dir      string
	endpoint *endpoint
	env      []string

	mu       sync.Mutex
	sidecars []*Process

	closing  sync.Once
	closeErr error
}

// NewCast starts the example driver, or connects to another one, and registers it: a CSIDriver object, and an entry in
// the CSINode of each node that it is on.
func (s *Stage) NewCast(ctx context.Context, roles Roles) (*Cast, error) {
	c := &Cast{stage: s, node: roles.Node, Socket: socketPath(roles.Socket), env: slices.Clip(roles.Env)}
	s.mu.Lock()
	s.count++
	c.dir = s.path(fmt.Sprint("c", s.count))
	s.casts = append(s.casts, c)
	s.mu.Unlock()
	err := os.MkdirAll(c.dir, 0o755)
	if err == nil && roles.Socket == "" {
		err = c.startDriver(roles)
	}
	if err == nil {
		c.endpoint, err = dial(c.Socket)
	}
	if err == nil {
		err = c.meet(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("bringing up the driver: %w%s", err, c.driverLog())
	}
	c.Kubelet = newKubelet(c, filepath.Join(c.dir, "kubelet"))
	if err := c.register(ctx, roles); err != nil {
		return nil, fmt.Errorf("registering driver %s: %w", c.Info.Name, err)
	}
	return c, nil
}

// meet asks the driver who it is. One that ends at once, as with a flag that it does not know, is not waited for.
func (c *Cast) meet(ctx context.Context) (err error) {
	if c.Driver != nil {
		var cancel context.CancelFunc
		ctx, cancel = c.Driver.whileRunning(ctx)
		defer cancel()
	}
	if c.Info, err = c.endpoint.ask(ctx); err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (c *Cast) startDriver(roles Roles) error {
	c.Socket = filepath.Join(c.dir, "csi.sock")
	controls := filepath.Join(c.dir, controlSocket)
	if err := c.checkSockets(controls, roles); err != nil {
		return err
	}
	args := []string{"--endpoint=unix://" + c.Socket, "--control=" + controls, "--state=" + filepath.Join(c.dir, "state")}
	if roles.Name != "" {
		args = append(args, "--name="+roles.Name)
	}
	if len(roles.Topology) > 0 {
		file := filepath.Join(c.dir, "topology.json")
		content, err := json.Marshal(roles.Topology)
		if err == nil {
			err = os.WriteFile(file, content, 0o600)
		}
		if err != nil {
			return fmt.Errorf("writing the topology: %w", err)
		}
		args = append(args, "--topology="+file)
	}
	var err error
	if c.Control, err = control.Dial(controls); err != nil {
		return err
	}
	args = append(args, roles.Flags...)
	c.Driver = &Process{Name: string(Driver), Path: c.stage.programs[Driver], Args: args, Log: filepath.Join(c.dir, "driver.log")}
	c.moveIn(roles)
	return c.Driver.Start()
}

func (c *Cast) driverLog() string {
	if c.Driver == nil {
		return ""
	}
	return "; the end of its log:\n" + c.Driver.LogTail(10)
}

// register does what the driver's deployment and the registration on each node do.
func (c *Cast) register(ctx context.Context, roles Roles) error {
	object := &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: c.Info.Name},
		// The kubelet played here attaches by itself where a driver wants it.
		Spec: storagev1.CSIDriverSpec{
			AttachRequired: ptr.To(false), StorageCapacity: ptr.To(roles.Capacity), FSGroupPolicy: ptr.To(storagev1.FileFSGroupPolicy),
		},
	}
	_, err := c.stage.Kube.StorageV1().CSIDrivers().Create(ctx, object, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the CSIDriver: %w", err)
	}
	for _, node := range c.stage.nodes {
		entry := storagev1.CSINodeDriver{Name: c.Info.Name, NodeID: node.Name}
		err = nil
		switch {
		case roles.Socket != "" && len(node.Taints) > 0:
			continue
		case roles.Socket != "":
			// One process serves every node here, and says the same of each.
			entry.NodeID = c.Info.NodeID
			err = c.labelNode(ctx, node.Name)
		case len(roles.Topology) > 0 && roles.Topology[node.Name] == nil:
			continue
		}
		if c.Info.HasTopology() {
			entry.TopologyKeys = c.Info.TopologyKeys()
		}
		if err = errors.Join(err, c.addToNode(ctx, node.Name, entry)); err != nil {
			return err
		}
	}
	return c.awaitKubelets(ctx, roles)
}

// addToNode merges by the driver's name, so that casts can register at the same time.
func (c *Cast) addToNode(ctx context.Context, node string, entry storagev1.CSINodeDriver) error {
	content := map[string]any{"spec": map[string]any{"drivers": []storagev1.CSINodeDriver{entry}}}
	body, err := json.Marshal(content)
	if err == nil {
		_, err = c.stage.Kube.StorageV1().CSINodes().Patch(ctx, node, types.StrategicMergePatchType, body, metav1.PatchOptions{})
	}
	if err != nil {
		return fmt.Errorf("adding the driver to CSINode %s: %w", node, err)
	}
	return nil
}

func (c *Cast) labelNode(ctx context.Context, node string) error {
	labels := map[string]*string{}
	for k, v := range c.Info.Segments {
		labels[k] = ptr.To(v)
	}
	return c.stage.Cluster.UpdateNodeLabels(ctx, node, labels)
}

// StartSidecar starts a sidecar with the driver's socket, a kubeconfig of its service account, and whatever flags are
// given. The sidecars of a cast are told apart by their names.
func (c *Cast) StartSidecar(program Program, flags ...string) (*Process, error) {
	c.mu.Lock()
	name := string(program)
	for _, other := range c.sidecars {
		if other.Name == name || strings.HasPrefix(other.Name, name+"-") {
			name += "-next"
		}
	}
	args := []string{"--csi-address=" + c.Socket, "--kubeconfig=" + c.stage.kubeconfigs[program]}
	if program == Provisioner {
		// Where its pod would be, and its account has rights.
		args = append(args, "--leader-election-namespace="+Namespace)
	}
	p := &Process{
		Name: name, Path: c.stage.programs[program], Args: append(args, flags...),
		Env: c.env,
		Log: filepath.Join(c.dir, name+".log"),
	}
	if c.node != "" {
		p.Env = append(p.Env, "NODE_NAME="+c.node)
	}
	c.sidecars = append(c.sidecars, p)
	c.mu.Unlock()
	return p, p.Start()
}

// Processes are those of the cast that were started here.
func (c *Cast) Processes() []*Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := append([]*Process(nil), c.sidecars...)
	if c.Driver != nil {
		all = append(all, c.Driver)
	}
	return all
}

// Dir is the folder with the logs of the cast.
func (c *Cast) Dir() string { return c.dir }

// Volumes lists the ids of what the driver stores; known is false if it cannot tell.
func (c *Cast) Volumes(ctx context.Context) (ids []string, known bool, err error) {
	return c.endpoint.volumes(ctx, c.Info)
}

// StoredSnapshots lists the ids of the snapshots that the driver stores; known is false if it cannot tell.
func (c *Cast) StoredSnapshots(ctx context.Context) (ids []string, known bool, err error) {
	return c.endpoint.snapshots(ctx, c.Info)
}

// MakeVolume makes a volume at the driver that Kubernetes knows nothing of: room that is taken behind its back.
func (c *Cast) MakeVolume(ctx context.Context, name string, segment map[string]string, size int64) error {
	_, err := c.endpoint.controller.CreateVolume(ctx, &csi.CreateVolumeRequest{
		Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: size},
		VolumeCapabilities: []*csi.VolumeCapability{{
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		}},
		AccessibilityRequirements: &csi.TopologyRequirement{Requisite: []*csi.Topology{{Segments: segment}}},
	})
	if err != nil {
		return fmt.Errorf("making volume %s at the driver: %w", name, err)
	}
	return nil
}

// MakeSnapshot makes a snapshot at the driver that Kubernetes knows nothing of, for contents that are written by hand.
func (c *Cast) MakeSnapshot(ctx context.Context, name, volume string) (id string, err error) {
	answer, err := c.endpoint.controller.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: name, SourceVolumeId: volume})
	if err != nil {
		return "", fmt.Errorf("making snapshot %s at the driver: %w", name, err)
	}
	return answer.GetSnapshot().GetSnapshotId(), nil
}

// Close ends the sidecars and then the driver, once. The mounts go first, while the driver is still there to undo them.
func (c *Cast) Close() error {
	c.closing.Do(func() { c.closeErr = c.close() })
	return c.closeErr
}

func (c *Cast) close() error {
	var failures []error
	if c.Kubelet != nil && (c.Driver == nil || c.Driver.IsRunning()) {
		failures = append(failures, c.Kubelet.close())
	}
	var ends sync.WaitGroup
	for _, p := range c.Processes() {
		if p != c.Driver {
			ends.Go(func() { p.Terminate() })
		}
	}
	ends.Wait()
	if c.Driver != nil {
		c.Driver.Terminate()
	}
	if c.endpoint != nil {
		failures = append(failures, c.endpoint.connection.Close())
	}
	return errors.Join(append(failures, unmountBelow(c.dir))...)
}
