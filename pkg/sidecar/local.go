// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"fmt"
	"os"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/klog/v2"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"

	"github.com/csi-tandem/csi-tandem/pkg/driver"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
)

// nodeVariable names the node that the process is on; manifests set it from spec.nodeName.
const nodeVariable = "NODE_NAME"

// Lead says when a runnable has to lead.
type Lead int

// The rules. The first is what --leader-election says.
const (
	LeadIfAsked Lead = iota
	LeadAlways
	LeadNever
)

// elects tells whether a group of runnables, which share a lease, needs it.
func (l *life) elects(members []Runnable) bool {
	for _, r := range members {
		switch r.Lead {
		case LeadAlways:
			return true
		case LeadNever:
			return false
		case LeadIfAsked:
		}
	}
	return l.Options.Election.Enabled
}

// Narrow says which objects a process that serves one node keeps of those that it watches; nil keeps all.
type Narrow struct {
	Claims      func(*corev1.PersistentVolumeClaim) bool
	Volumes     func(*corev1.PersistentVolume) bool
	Attachments func(*storagev1.VolumeAttachment) bool
	Snapshots   func(*snapv1.VolumeSnapshot) bool
	// Contents is a label selector, so that the API server does not even send the others.
	Contents string
	// TrimVolume goes around the trimming of volumes, for what has to be kept besides.
	TrimVolume func(trim func(*corev1.PersistentVolume)) func(*corev1.PersistentVolume)
}

// readNode finds out which node is served, when it is only one. The name is needed before anything else happens.
func (p *process) readNode() error {
	if p.PerNode == nil || !p.PerNode() {
		return nil
	}
	if p.node = os.Getenv(nodeVariable); p.node == "" {
		return fatal("--node-deployment: the variable %s is empty; set it to the name of the node, in a manifest by fieldPath: spec.nodeName", nodeVariable)
	}
	return nil
}

// mustElect tells whether something leads whatever --leader-election says.
func (p *process) mustElect() bool { return p.MustElect != nil && p.MustElect() }

// leaseFor is the program's own lease. Processes that each serve a node do not exclude each other.
func (l *life) leaseFor(name string) string {
	if l.node == "" {
		return name
	}
	return SanitizedLease(name + "-" + l.node)
}

// fetchPlace waits until the driver says where it runs, if that is of any interest. Before each try something is done.
func (l *life) fetchPlace(ctx context.Context, conn *driver.Conn, before func()) (topology.Segment, error) {
	if l.node == "" || !l.AsksPlace {
		return nil, nil
	}
	info, err := insist(ctx, l, "Waiting for the driver to say where it runs", func() (*csi.NodeGetInfoResponse, error) {
		before()
		return conn.NodeGetInfo(ctx)
	})
	if err != nil {
		return nil, err
	}
	l.health.set(checkDriver, "")
	place := topology.SegmentOf(info.GetAccessibleTopology().GetSegments())
	klog.FromContext(ctx).Info("Serving one node", "node", l.node, "segment", place.String())
	return place, nil
}

// checkPlace ends the process when the driver has come back as one of another place.
func (l *life) checkPlace(ctx context.Context, k *link) error {
	asking, stop := context.WithCancel(ctx)
	defer stop()
	place, err := l.fetchPlace(asking, k.conn, func() {
		if k.conn.Losses() != k.losses {
			stop() // it was lost again, and has to say first who it is: until then calls are held back
		}
	})
	if err != nil || place.Compare(k.place) == 0 {
		return nil // the process is ending, or the driver is met once more, or all is as it was
	}
	return &lastWords{fmt.Errorf("the driver was at %s and came back at %s: exiting to start anew there", k.place, place)}
}

// onlyHere is an index of the one node that is served. Nothing is watched for it.
func (e *Env) onlyHere() *topology.Index {
	index := topology.NewIndex()
	keys := make([]string, 0, len(e.Place))
	for _, pair := range e.Place {
		keys = append(keys, pair.Key)
	}
	index.SetNode(e.Node, e.Place.Labels())
	index.SetDriverKeys(e.Node, keys)
	return index
}

// TopologyCaches are what Topology is fed from.
func (e *Env) TopologyCaches() []kube.Runner {
	if e.Node != "" {
		return nil
	}
	return Caches(e.Nodes(), e.CSINodes())
}

// LocalContents are the VolumeSnapshotContents of the node that is served.
func (e *Env) LocalContents() *kube.Informer[*kube.Content] {
	if e.Narrow.Contents == "" {
		return e.Contents()
	}
	if e.contents == nil {
		e.contents = kube.NewInformer(e.Client, kube.InformerOptions[*kube.Content]{
			Indexes: kube.ContentIndexes(), Trim: kube.TrimApplied[*kube.Content], Resync: e.Options.ResyncPeriod, LabelSelector: e.Narrow.Contents, Packed: true,
		})
		e.informers = append(e.informers, e.contents)
	}
	return e.contents
}

// trimVolume is what is left of a volume.
func (e *Env) trimVolume() func(*corev1.PersistentVolume) {
	trim := kube.TrimVolume(e.DriverName)
	if e.Narrow.TrimVolume != nil {
		return e.Narrow.TrimVolume(trim)
	}
	return trim
}
