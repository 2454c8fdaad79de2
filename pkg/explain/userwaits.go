// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// waits looks for what the pods of a claim wait for.
type waits struct {
	*claimLook
	pods []*kube.Pod
	// nodes are the troubles of nodes that have been looked at.
	nodes map[string]string
	// attachments are those of the volume, once they have been read.
	attachments []*storagev1.VolumeAttachment
	hasRead     bool
}

func (w *waits) user(ctx context.Context, p *kube.Pod) User {
	u := User{Pod: p.Name}
	trouble := ""
	if p.Spec.NodeName != "" && !isOver(p) {
		trouble = w.trouble(ctx, p.Spec.NodeName)
	}
	switch {
	case isOver(p):
		u.State = fmt.Sprintf("has ended (%s)", p.Status.Phase)
		if w.claim.DeletionTimestamp != nil {
			u.helps("delete pod %s: also one that has ended holds a claim that is to go", p.Name)
		}
	case p.Spec.NodeName == "":
		u.State = "is on no node yet"
		w.unscheduled(ctx, p, &u)
	case p.Status.Phase == corev1.PodRunning && trouble == "":
		u.State = "runs on node " + p.Spec.NodeName
	case p.Status.Phase == corev1.PodRunning:
		u.State = "was running on node " + p.Spec.NodeName
	default:
		u.State = fmt.Sprintf("is on node %s and has not started", p.Spec.NodeName)
		w.unstarted(ctx, p, &u)
	}
	if at := p.DeletionTimestamp; at != nil {
		u.State += fmt.Sprintf(", being deleted for %s", span(w.Clock.Since(at.Time)))
	}
	if trouble != "" {
		u.because("%s", trouble)
		u.helps("bring node %s back: its pods and their volumes go on by themselves", p.Spec.NodeName)
		if p.DeletionTimestamp != nil {
			u.helps("%s", giveUp(p.Spec.NodeName))
		}
	}
	return u
}

// giveUp is how Kubernetes is told that a node has nothing to lose any more.
// https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/#non-graceful-node-shutdown
func giveUp(node string) string {
	return fmt.Sprintf("only if node %s is certainly off and stays so: kubectl taint nodes %[1]s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute, which ends its pods and detaches their volumes", node)
}

// unscheduled is about a pod for which the scheduler has found no node.
func (w *waits) unscheduled(ctx context.Context, p *kube.Pod, u *User) {
	w.occupied(p, u)
	i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
	chosen := annotation(w.claim, wellknown.AnnSelectedNode)
	switch {
	case i >= 0:
		u.because("%s: %s", p.Status.Conditions[i].Reason, p.Status.Conditions[i].Message)
	case w.claim.Spec.VolumeName == "" && chosen != "":
		u.because("the scheduler has chosen node %s for a pod of this claim, and waits for the claim's volume, of which it writes no event", chosen)
	default:
		u.because("no scheduler has said anything about it")
		u.helps("see that scheduler %s runs", p.Spec.SchedulerName)
	}
	w.placed(ctx, u)
}

// occupied is about a claim for one pod at a time that another pod has.
func (w *waits) occupied(p *kube.Pod, u *User) {
	if !slices.Contains(w.claim.Spec.AccessModes, corev1.ReadWriteOncePod) {
		return
	}
	for _, other := range w.pods {
		isIn := other.Spec.NodeName != "" && !isOver(other)
		if other != p && isIn && (p.Spec.NodeName == "" || other.Status.Phase == corev1.PodRunning) {
			u.because("the claim is for one pod at a time (ReadWriteOncePod), and pod %s on node %s has it", other.Name, other.Spec.NodeName)
			u.helps("end pod %s; or use ReadWriteOnce in a new claim, which pods of one node can share", other.Name)
		}
	}
}

// placed tells which nodes can reach the volume, since a pod that uses it can be on no other.
func (w *waits) placed(ctx context.Context, u *User) {
	if w.volume == nil || w.volume.Spec.NodeAffinity == nil {
		return
	}
	where := "where the affinity of PersistentVolume " + w.volume.Name + " says"
	if segments := topology.SegmentsOf(w.volume.Spec.NodeAffinity); len(segments) > 0 {
		var texts []string
		for _, s := range segments {
			texts = append(texts, s.String())
		}
		where = "on nodes with " + strings.Join(texts[:min(len(texts), shown)], " or ")
	}
	var reach, good []string
	err := list(ctx, w.look, "", metav1.ListOptions{}, func(node *corev1.Node) {
		if ok, err := topology.Accessible(w.volume.Spec.NodeAffinity, node.Labels); err != nil || !ok {
			return
		}
		text := w.fitness(ctx, node, len(reach) < shown)
		if text == node.Name {
			good = append(good, text)
		}
		reach = append(reach, text)
	})
	switch {
	case err != nil:
		u.because("its volume can be used only %s", where)
	case len(reach) == 0:
		u.because("its volume can be used only %s, and there is no such node", where)
		u.helps("bring a node back that had these labels: the data is there and nowhere else")
	default:
		u.because("its volume can be used only %s: %s", where, some(reach))
		if len(good) == 0 {
			u.helps("let one of these nodes take pods again")
		}
	}
}

// fitness is the name of a node with what keeps pods from it; not of each of thousands, since that takes a read.
func (w *waits) fitness(ctx context.Context, node *corev1.Node, whole bool) string {
	text := node.Name
	if node.Spec.Unschedulable {
		text += " (cordoned: it takes no new pods)"
	}
	if whole {
		if trouble := w.troubleOf(ctx, node); trouble != "" {
			text += " (" + trouble + ")"
		}
	}
	return text
}

// unstarted is about a pod that its node is to start.
func (w *waits) unstarted(ctx context.Context, p *kube.Pod, u *User) {
	w.occupied(p, u)
	w.attached(ctx, p, u)
	for _, c := range slices.Concat(p.Status.Init, p.Status.Containers) {
		if reason := c.State.Waiting; reason.Message != "" {
			u.because("container %s waits, %s: %s", c.Name, reason.Reason, reason.Message)
		}
	}
	selector := fields.OneTermEqualSelector("involvedObject.uid", string(p.UID)).String()
	var last *corev1.Event
	// What was refused is told at the end.
	_ = list(ctx, w.look, p.Namespace, metav1.ListOptions{FieldSelector: selector}, func(e *corev1.Event) {
		if e.Type == corev1.EventTypeWarning && (last == nil || timeOf(last).Before(timeOf(e))) {
			last = e
		}
	})
	if last != nil {
		u.because("%s, %s ago: %s", last.Reason, span(w.Clock.Since(timeOf(last))), last.Message)
	}
}

// attached tells what the volume's attachments say, for drivers that attach.
func (w *waits) attached(ctx context.Context, p *kube.Pod, u *User) {
	for _, a := range w.readAttachments(ctx) {
		switch node := a.Spec.NodeName; {
		case node != p.Spec.NodeName && a.Status.Attached && !isShared(w.claim):
			u.because("its volume is still attached to node %s", node)
			if trouble := w.trouble(ctx, node); trouble != "" {
				u.because("%s", trouble)
				u.helps("%s", giveUp(node))
			}
		case node == p.Spec.NodeName && a.Status.AttachError != nil:
			u.because("VolumeAttachment %s: %s", a.Name, a.Status.AttachError.Message)
		case node == p.Spec.NodeName && !a.Status.Attached:
			u.because("its volume is not attached to the node yet, which VolumeAttachment %s asks for", a.Name)
			u.helps("see that the external-attacher of driver %s runs, and what its log says", a.Spec.Attacher)
		}
	}
}

func isShared(claim *corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(claim.Spec.AccessModes, func(m corev1.PersistentVolumeAccessMode) bool {
		return m == corev1.ReadWriteMany || m == corev1.ReadOnlyMany
	})
}

// readAttachments reads them once, since they cannot be searched by volume.
func (w *waits) readAttachments(ctx context.Context) []*storagev1.VolumeAttachment {
	if w.hasRead {
		return w.attachments
	}
	w.hasRead = true
	_ = list(ctx, w.look, "", metav1.ListOptions{}, func(a *storagev1.VolumeAttachment) {
		if ptr.Deref(a.Spec.Source.PersistentVolumeName, "") == w.claim.Spec.VolumeName {
			w.attachments = append(w.attachments, a)
		}
	})
	slices.SortFunc(w.attachments, func(a, b *storagev1.VolumeAttachment) int { return strings.Compare(a.Name, b.Name) })
	return w.attachments
}
