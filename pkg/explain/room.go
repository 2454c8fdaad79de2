// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/csi-tandem/csi-tandem/pkg/capacity"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Room is what the scheduler is told about one segment of the cluster, by one CSIStorageCapacity object.
type Room struct {
	Segment string `json:"segment"`
	// Free is how much there is, and Largest how large one volume may be, if the driver says so.
	Free    string `json:"free"`
	Largest string `json:"largest,omitempty"`
	// Fits tells that the scheduler takes it for enough.
	Fits bool `json:"fits"`
	// Selected tells that the claim's node is in the segment.
	Selected bool `json:"selected,omitempty"`
	// Object is the CSIStorageCapacity, and Written how long ago its value changed.
	Object  string `json:"object"`
	Written string `json:"written,omitempty"`
}

// showRoom tells of a claim that waits for its first pod where the scheduler believes that there is room: a pod
// whose nodes have none stays pending, and its events do not say of which driver, class and segment.
func (l *claimLook) showRoom(ctx context.Context) {
	if l.claim.Spec.VolumeName != "" || !waitsForConsumer(l.class) {
		return
	}
	size := l.claim.Spec.Resources.Requests[corev1.ResourceStorage]
	labelled := metav1.ListOptions{LabelSelector: labels.Set{wellknown.LabelCapacityDriver: l.Driver.Name}.String()}
	node := l.selectedLabels(ctx)
	err := list(ctx, l.look, "", labelled, func(c *storagev1.CSIStorageCapacity) {
		if c.StorageClassName == l.class.Name {
			l.report.Room = append(l.report.Room, l.roomOf(c, size, node))
		}
	})
	if err != nil {
		for _, failed := range l.client.takeFailed() {
			l.note("Where the scheduler sees room is not shown: %s.", failed)
		}
		return
	}
	if node == nil {
		l.noteRoom(ctx)
	}
	slices.SortFunc(l.report.Room, func(a, b Room) int { return cmp.Or(cmp.Compare(a.Segment, b.Segment), cmp.Compare(a.Object, b.Object)) })
}

// noteRoom tells which piece is missing for the scheduler to know where there is room, as long as it has not chosen a node.
func (l *claimLook) noteRoom(ctx context.Context) {
	const publishes = "--enable-capacity of the provisioner publishes such objects"
	driver, none := l.Driver.Name, fmt.Sprintf("No CSIStorageCapacity object is about StorageClass %s", l.class.Name)
	object, err := kube.Fetch[*storagev1.CSIDriver](ctx, l.client, kube.Key{Name: driver})
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		_ = l.client.takeFailed() // what is told then holds in both cases
		if len(l.report.Room) == 0 {
			l.note("%s. Where CSIDriver %s has storageCapacity: true, the scheduler chooses no node for the pod then; %s.", none, driver, publishes)
		}
	case err != nil:
		l.note("The scheduler chooses nodes without asking where there is room: CSIDriver %s does not exist.", driver)
	case object.Spec.StorageCapacity == nil || !*object.Spec.StorageCapacity:
		l.note("The scheduler chooses nodes without asking where there is room: CSIDriver %s does not have storageCapacity: true.", driver)
	case len(l.report.Room) == 0:
		helps := publishes
		if lack := l.findLack(ctx); lack != "" {
			helps = "there is nothing to publish: " + lack
		}
		l.note("%s, and as CSIDriver %s has storageCapacity: true, the scheduler chooses no node for the pod; %s.", none, driver, helps)
	}
}

// findLack says why the driver is in no segment of the cluster; empty if it is in one, or that is not known.
func (l *claimLook) findLack(ctx context.Context) string {
	index := topology.NewIndex()
	err := list(ctx, l.look, "", metav1.ListOptions{}, func(node *storagev1.CSINode) { kube.FeedCSINode(index, l.Driver.Name, node) })
	if err == nil {
		err = list(ctx, l.look, "", metav1.ListOptions{}, func(node *corev1.Node) { index.SetNode(node.Name, node.Labels) })
	}
	if err != nil {
		_ = l.client.takeFailed() // it only would have been told more exactly
		return ""
	}
	stock := capacity.Stock{Driver: l.Driver.Name, Segments: len(index.Segments()), Classes: 1, Published: 1}
	stock.Nodes, stock.Keys = index.Registered()
	return capacity.Lack(stock)
}

// selectedLabels are those of the node that the scheduler has chosen, nil when there is none.
func (l *claimLook) selectedLabels(ctx context.Context) labels.Set {
	name := annotation(l.claim, wellknown.AnnSelectedNode)
	if name == "" {
		return nil
	}
	node, err := kube.Fetch[*corev1.Node](ctx, l.client, kube.Key{Name: name})
	if err != nil {
		return nil // the reader remembers what was refused
	}
	return node.Labels
}

// roomOf compares as the scheduler does: with the largest volume if that is known, else with all there is.
func (l *claimLook) roomOf(c *storagev1.CSIStorageCapacity, size resource.Quantity, node labels.Set) Room {
	room := Room{Object: c.Namespace + "/" + c.Name, Segment: "all nodes", Free: "nothing is known"}
	limit := c.Capacity
	if c.Capacity != nil {
		room.Free = c.Capacity.String()
	}
	if c.MaximumVolumeSize != nil {
		limit, room.Largest = c.MaximumVolumeSize, c.MaximumVolumeSize.String()
	}
	room.Fits = limit != nil && limit.Cmp(size) >= 0
	if selector, err := metav1.LabelSelectorAsSelector(c.NodeTopology); err == nil && c.NodeTopology != nil {
		if text := selector.String(); text != "" {
			room.Segment = text
		}
		room.Selected = node != nil && selector.Matches(node)
	}
	if at := lastWrite(c); !at.IsZero() {
		room.Written = span(l.Clock.Since(at))
	}
	return room
}

// lastWrite is when an object was last changed by anybody, as its managed fields say.
func lastWrite(obj metav1.Object) time.Time {
	last := obj.GetCreationTimestamp().Time
	for _, entry := range obj.GetManagedFields() {
		if entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}

// rooms is the text about them.
func (p *page80) rooms(rooms []Room) {
	if len(rooms) == 0 {
		return
	}
	p.line("\nRoom, as the scheduler is told of it")
	for i, r := range rooms {
		if i == shown {
			p.item("  ", fmt.Sprintf("and %d segments more", len(rooms)-shown))
			break
		}
		text := fmt.Sprintf("%s: %s free", r.Segment, r.Free)
		if r.Largest != "" {
			text += fmt.Sprintf(", %s for one volume", r.Largest)
		}
		if r.Fits {
			text += ", enough"
		} else {
			text += ", too little"
		}
		if r.Selected {
			text += "; the selected node is here"
		}
		p.item("  ", fmt.Sprintf("%s (CSIStorageCapacity %s, changed %s ago)", text, r.Object, r.Written))
	}
}
