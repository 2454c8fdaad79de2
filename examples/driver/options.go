// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/csi-tandem/csi-tandem/examples/driver/backend"
	"github.com/csi-tandem/csi-tandem/examples/driver/mount"
	"github.com/csi-tandem/csi-tandem/examples/driver/server"
)

// options are the flags as they were given.
type options struct {
	endpoint, control, state string
	name, node               string
	topologyFile, poolsFile  string
	nodeTopology             repeated
	poolCapacity             string
	minimumSize              string
	capabilities             string
	requireSecrets           repeated
	requireSecretsOn         string
	snapshotReadyAfter       time.Duration
	copyAcross, sync         bool
	mount                    string
	block                    string
	kubelets                 repeated
	logCalls                 int
}

// settings are the options after all files were read and all text was parsed.
type settings struct {
	endpoint, control string
	server            server.Options
	backend           backend.Options
	// kubelets are the folders of the kubelets to register with, by node.
	kubelets map[string]string
	block    string
	logCalls int
	crash    func()
}

func newOptions() *options {
	return &options{
		name:         "tandem.csi.example",
		poolCapacity: "1Ti",
		minimumSize:  "0",
		requireSecretsOn: "CreateVolume,DeleteVolume,CreateSnapshot,DeleteSnapshot,ListSnapshots,GetSnapshot," +
			"ControllerModifyVolume",
		mount:    "auto",
		block:    "auto",
		sync:     true,
		logCalls: 10000,
	}
}

// AddFlags binds the flags.
func (o *options) AddFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.endpoint, "endpoint", o.endpoint, "socket of the CSI services, such as unix:///run/csi.sock")
	fs.StringVar(&o.control, "control", o.control, "socket for scripting faults and reading the call log; none if empty")
	fs.StringVar(&o.state, "state", o.state, "folder for volumes, snapshots and their records")
	fs.StringVar(&o.name, "name", o.name, "name of the driver")
	fs.StringVar(&o.node, "node", o.node, "id of this node; default is the first in the topology, or else the host name")
	fs.StringVar(&o.topologyFile, "topology", o.topologyFile, `JSON file with the segment of each node: {"node1": {"zone": "a"}}`)
	fs.Var(&o.nodeTopology, "node-topology", "segment of one node, such as node1=zone=a,rack=r1; repeatable")
	fs.StringVar(&o.poolsFile, "pools", o.poolsFile, `JSON file with the pools: [{"segment": {"zone": "a"}, "capacity": "10Gi", `+
		`"maximumVolumeSize": "5Gi"}]; default is one pool per distinct segment of the topology`)
	fs.StringVar(&o.poolCapacity, "pool-capacity", o.poolCapacity, "capacity of each pool when there is no --pools")
	fs.StringVar(&o.minimumSize, "minimum-size", o.minimumSize, "size that smaller volumes are raised to")
	fs.StringVar(&o.capabilities, "capabilities", o.capabilities, "capabilities to claim, or with a minus in front to switch off, "+
		"such as -CLONE_VOLUME,-node:GET_VOLUME_STATS; default is all")
	fs.Var(&o.requireSecrets, "require-secrets", "secret that calls must bring: key=value, or a file with such lines; repeatable")
	fs.StringVar(&o.requireSecretsOn, "require-secrets-on", o.requireSecretsOn, "calls that must bring the required secrets")
	fs.DurationVar(&o.snapshotReadyAfter, "snapshot-ready-after", o.snapshotReadyAfter, "how long a new snapshot stays unready")
	fs.BoolVar(&o.copyAcross, "copy-across", o.copyAcross, "let volumes be restored and cloned into other segments than that of their source")
	fs.BoolVar(&o.sync, "sync", o.sync, "force records to the disk, so that they survive a power cut and not only a kill")
	fs.StringVar(&o.mount, "mount", o.mount, "how volumes are published: bind, link, or auto for bind where it works")
	fs.StringVar(&o.block, "block", o.block, "what block volumes are published as: device (a loop device), file, or auto for device if there is a --kubelet")
	fs.Var(&o.kubelets, "kubelet", "folder of a kubelet to register with, such as node1=/var/lib/kubelet; repeatable")
	fs.IntVar(&o.logCalls, "log-calls", o.logCalls, "how many calls the log keeps")
}

// Settle checks the options and reads the files that they name.
func (o *options) Settle() (*settings, error) {
	if o.endpoint == "" || o.state == "" {
		return nil, errors.New("--endpoint and --state are needed")
	}
	if o.name == "" || len(o.name) > 63 {
		return nil, errors.New("--name must have 1 to 63 characters")
	}
	if o.snapshotReadyAfter < 0 || o.logCalls < 1 {
		return nil, errors.New("--snapshot-ready-after and --log-calls must be positive")
	}
	endpoint, err := socketPath(o.endpoint)
	if err != nil {
		return nil, fmt.Errorf("--endpoint: %w", err)
	}
	control := ""
	if o.control != "" {
		if control, err = socketPath(o.control); err != nil {
			return nil, fmt.Errorf("--control: %w", err)
		}
	}
	s := &settings{endpoint: endpoint, control: control, logCalls: o.logCalls, block: o.block}
	if s.kubelets, err = readKubelets(o.kubelets); err != nil {
		return nil, err
	}
	if s.server, err = o.serverOptions(); err != nil {
		return nil, err
	}
	s.backend, err = o.backendOptions(s.server.Topology)
	return s, err
}

func (o *options) serverOptions() (server.Options, error) {
	s := server.Options{Name: o.name, Version: "1"}
	var err error
	if s.Features, err = server.ParseFeatures(o.capabilities); err != nil {
		return s, err
	}
	if s.Topology, err = readTopology(o.topologyFile, o.nodeTopology); err != nil {
		return s, err
	}
	if s.Node, err = o.nodeID(s.Topology); err != nil {
		return s, err
	}
	if s.Secrets, err = readSecrets(o.requireSecrets); err != nil {
		return s, err
	}
	s.SecretMethods = strings.Split(o.requireSecretsOn, ",")
	switch o.block {
	case "device", "file":
		s.Devices = o.block == "device"
	case "auto":
		// Others than pods can do with files, and devices are few.
		s.Devices = len(o.kubelets) > 0
	default:
		return s, fmt.Errorf("--block is device, file or auto, not %q", o.block)
	}
	switch s.Mount = mount.Mode(o.mount); s.Mount {
	case mount.Bind, mount.Link:
	case "auto":
		// Decided when the folder is there to try it in.
		s.Mount = ""
	default:
		return s, fmt.Errorf("--mount is bind, link or auto, not %q", o.mount)
	}
	return s, nil
}

func (o *options) nodeID(topology map[string]backend.Segment) (string, error) {
	if o.node != "" {
		return o.node, nil
	}
	if len(topology) > 0 {
		return slices.Min(slices.Collect(maps.Keys(topology))), nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("finding the host name for want of --node: %w", err)
	}
	return host, nil
}

func (o *options) backendOptions(topology map[string]backend.Segment) (backend.Options, error) {
	b := backend.Options{
		Dir: o.state, SnapshotReadyAfter: o.snapshotReadyAfter,
		CopyAcross: o.copyAcross, Sync: o.sync, Now: time.Now,
	}
	var err error
	if b.MinimumSize, err = parseSize(o.minimumSize); err != nil {
		return b, fmt.Errorf("--minimum-size: %w", err)
	}
	capacity, err := parseSize(o.poolCapacity)
	if err != nil {
		return b, fmt.Errorf("--pool-capacity: %w", err)
	}
	if o.poolsFile != "" {
		b.Pools, err = readPools(o.poolsFile)
		return b, err
	}
	distinct := map[string]backend.Segment{"": {}}
	for _, s := range topology {
		distinct[s.Key()] = s
	}
	if len(topology) > 0 {
		delete(distinct, "")
	}
	for _, s := range slices.SortedFunc(maps.Values(distinct), func(x, y backend.Segment) int { return cmp.Compare(x.Key(), y.Key()) }) {
		b.Pools = append(b.Pools, backend.Pool{Segment: s, Capacity: capacity})
	}
	return b, nil
}
