// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/volume"
	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Volume explains what the provisioner would do about a PersistentVolume. The error means that there is nothing
// to explain.
func Volume(ctx context.Context, s Setting, rooms Provisioner, name string) (*Report, error) {
	l := newClaimLook(s, rooms)
	found, err := fill(ctx, l.look, l.volumes, kube.Key{Name: name})
	if err != nil {
		return nil, fmt.Errorf("reading PersistentVolume %s: %w", name, l.missing(ctx, kindVolume, kube.Key{Name: name}, err))
	}
	l.volume = found
	state := []Fact{{"state", l.since(found, string(found.Status.Phase))}}
	if ref := found.Spec.ClaimRef; ref != nil {
		state = append(state, Fact{"claim", l.whose(ctx, ref)})
	}
	l.report.Object = Object{Kind: kindVolume, Name: name, State: state}
	l.nameDriver(
		Fact{"the PersistentVolume", driverOf(found)},
		Fact{"annotation " + wellknown.AnnProvisionedBy + " of the PersistentVolume", found.Annotations[wellknown.AnnProvisionedBy]},
	)
	l.showSidecars(ctx, wellknown.SanitizeLease(l.Driver.Name), provisioner)
	l.explainVolume(ctx, name)
	l.noteUnled()
	l.hold(found, kindVolume)
	return l.report, nil
}

// whose is the claim of the volume, and how to ask about it if it is there to be asked about. One of the same name may have come after it.
func (l *claimLook) whose(ctx context.Context, ref *corev1.ObjectReference) string {
	var claim *corev1.PersistentVolumeClaim
	var err error
	l.client.apart(func() { // who may not read claims is told how to ask
		claim, err = kube.Fetch[*corev1.PersistentVolumeClaim](ctx, l.client, kube.Key{Namespace: ref.Namespace, Name: ref.Name})
	})
	if apierrors.IsNotFound(err) || err == nil && ref.UID != "" && claim.UID != ref.UID {
		return fmt.Sprintf("%s/%s, which does not exist (any more)", ref.Namespace, ref.Name)
	}
	return fmt.Sprintf("%s/%s: provisioner explain -n %[1]s %[2]s", ref.Namespace, ref.Name)
}

// explainVolume asks the room of volumes about the volume of the claim.
func (l *claimLook) explainVolume(ctx context.Context, name string) {
	m := Machine{Program: provisioner, Object: Object{Kind: kindVolume, Name: name}}
	if l.volume == nil {
		l.unasked(m, "Not known: the PersistentVolume of the claim could not be read.")
		return
	}
	m.Object.State = volumeFacts(l.volume)
	told := l.tell(ctx, l.volume, kindVolume)
	if class := provision.VolumeClass(l.volume); class != "" {
		_, _ = fill(ctx, l.look, l.classes, kube.Key{Name: class}) // needed only without a record of secrets
	}
	deps := volume.Deps{
		Client: l.client, DriverName: l.Driver.Name, Capabilities: l.Driver.Capabilities, Clock: l.Clock,
		Volumes: l.volumes, Classes: l.classes, Claims: l.claims, RetryStart: l.RetryStart, RetryMax: l.RetryMax,
		Attachments: kube.NewStore(kube.AttachmentIndexes()),
	}
	if l.volume.Status.Phase == corev1.VolumeReleased {
		// Attachments cannot be searched by volume; they matter only for a deletion.
		_ = list(ctx, l.look, "", metav1.ListOptions{}, func(a *storagev1.VolumeAttachment) { deps.Attachments.Show(a) })
	}
	l.askVolumeLocal(ctx, &m, &deps)
	in, step, err := volume.New(deps).Look(ctx, reconcile.Key{Name: name})
	if err != nil {
		m.Doubts = append(m.Doubts, err.Error())
	}
	step = l.deletionWithSecret(ctx, in, step)
	var found []hindrance
	if _, ok := step.(provision.Delete); ok {
		found = append(l.unserved(ctx, nil), l.undeleted(told)...)
	}
	l.add(m, []any{step}, adviseAgainst(found, adviseVolume(in, step)))
	l.hinder(step, found)
	if wait, ok := step.(provision.WaitDetached); ok {
		l.report.Machines[len(l.report.Machines)-1].Event = provision.StillAttached(name, wait.Node)
	}
}

// undeleted is what was told last of a deletion that is tried again.
func (l *claimLook) undeleted(told []*corev1.Event) []hindrance {
	var last *corev1.Event
	for _, e := range told {
		if e.Type == corev1.EventTypeWarning && e.Reason == wellknown.ReasonVolumeFailedDelete {
			last = e
		}
	}
	if last == nil || !fault.IsFromDriver(last.Message) {
		return nil
	}
	return []hindrance{{why: fmt.Sprintf("the deletion failed, %s ago: %s", span(l.Clock.Since(timeOf(last))), last.Message), advice: adviseDeletion(last.Message)}}
}

func volumeFacts(v *corev1.PersistentVolume) []Fact {
	phase := string(v.Status.Phase)
	if v.DeletionTimestamp != nil {
		phase += ", being deleted"
	}
	facts := []Fact{{"phase", phase}, {"reclaim policy", string(v.Spec.PersistentVolumeReclaimPolicy)}}
	if v.Spec.CSI != nil {
		facts = append(facts, Fact{"volume", fmt.Sprintf("%s of driver %s", v.Spec.CSI.VolumeHandle, v.Spec.CSI.Driver)})
	}
	if by := v.Annotations[wellknown.AnnProvisionedBy]; by != "" {
		facts = append(facts, Fact{"made by", by})
	}
	return facts
}
