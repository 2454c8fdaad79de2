// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// advising is an error that knows what would help.
type advising interface{ Advice() string }

// adviseClaim says what somebody can do about a claim that does not go on. It reads the input of the
// decision and decides nothing: where it knows no remedy, the step's own sentence has to do.
func adviseClaim(in provision.ClaimInput, step provision.ClaimStep, users []*kube.Pod) []string {
	switch s := step.(type) {
	case provision.Ignore:
		return adviseIgnored(in, users)
	case provision.LeaveToPopulator:
		return []string{"look at the program that handles sources of this kind: it makes the volume"}
	case provision.Reject:
		return adviseRejected(in, s)
	case provision.Reschedule:
		return adviseError(s.Err)
	}
	return nil
}

func adviseError(err error) []string {
	var knows advising
	if !errors.As(err, &knows) || knows.Advice() == "" || strings.Contains(err.Error(), knows.Advice()) {
		return nil
	}
	return []string{knows.Advice()}
}

func adviseIgnored(in provision.ClaimInput, users []*kube.Pod) []string {
	c, class := in.Claim, in.Class
	switch {
	case c == nil || c.Spec.VolumeName != "":
		return nil
	case c.DeletionTimestamp != nil:
		return []string{"nothing: a claim that is being deleted gets no volume; see below who holds it"}
	case waitsForConsumer(class) && annotation(c, wellknown.AnnSelectedNode) == "":
		if advice := adviseWaiting(users); len(advice) > 0 {
			return advice
		}
		return []string{
			"start a pod that uses the claim: the volume is made for the node that the scheduler chooses for it",
			"or use a class with volumeBindingMode Immediate in a new claim",
		}
	case class != nil && class.Provisioner != asked(c) && asked(c) == in.Driver:
		return []string{fmt.Sprintf("StorageClass %s is of driver %s by now, and the claim was given to driver %s: delete the claim and make it anew, or the class", class.Name, class.Provisioner, asked(c))}
	default:
		return []string{fmt.Sprintf("look at the sidecar of the driver that the claim is for, %s, or run this with --driver-name=%[1]s", asked(c))}
	}
}

func asked(c *corev1.PersistentVolumeClaim) string {
	if by := annotation(c, wellknown.AnnStorageProvisioner); by != "" {
		return by
	}
	return annotation(c, wellknown.AnnBetaStorageProvisioner)
}

// adviseUnclaimed is for a claim that Kubernetes has given to no driver.
func adviseUnclaimed(c *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, users []*kube.Pod) []string {
	name := provision.ClassName(c)
	switch {
	case c.Spec.VolumeName != "":
		return nil
	case name == "":
		return []string{"the claim has no class: mark a StorageClass as default, or name one in a new claim; or make a PersistentVolume without class that fits"}
	case class == nil:
		return []string{fmt.Sprintf("create StorageClass %s, or name another one in a new claim", name)}
	case waitsForConsumer(class) && len(adviseWaiting(users)) > 0:
		return adviseWaiting(users)
	case waitsForConsumer(class):
		return []string{"start a pod that uses the claim: its class waits for the first consumer, and nothing is done before there is one"}
	default:
		return []string{"wait a moment for kube-controller-manager to give the claim to " + class.Provisioner + "; if that lasts, look at its log"}
	}
}

// adviseWaiting is for a claim that waits for its first pod while there is one.
func adviseWaiting(users []*kube.Pod) []string {
	var advice []string
	for _, p := range users {
		switch {
		case isOver(p) || len(advice) == shown:
		case p.Spec.NodeName == "":
			advice = append(advice, fmt.Sprintf("see below why pod %s is on no node: the volume is made as soon as the scheduler has chosen one for it", p.Name))
		default:
			advice = append(advice, fmt.Sprintf("pod %s names its node itself (spec.nodeName), so that the scheduler chooses none for the claim: make it anew with spec.nodeSelector %s=%s instead",
				p.Name, corev1.LabelHostname, p.Spec.NodeName))
		}
	}
	return advice
}

func waitsForConsumer(class *storagev1.StorageClass) bool {
	return class != nil && class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

func adviseRejected(in provision.ClaimInput, s provision.Reject) []string {
	advice := adviseError(s.Err)
	switch {
	case in.Class == nil:
		advice = append(advice, fmt.Sprintf("create StorageClass %s, or name another one in a new claim", provision.ClassName(in.Claim)))
	case s.Waiting && in.Source != nil && in.Source.Snapshot != nil:
		snap := in.Source.Snapshot
		advice = append(advice, fmt.Sprintf("see why the snapshot is not ready: snapshotter explain -n %s %s", snap.Namespace, snap.Name))
	case s.Waiting && in.Source != nil && in.Source.Claim != nil:
		from := in.Source.Claim
		advice = append(advice, fmt.Sprintf("see why the source is not bound: provisioner explain -n %s %s", from.Namespace, from.Name))
	}
	if len(advice) == 0 {
		advice = append(advice, "change what the message names, in the class or in a new claim; the sidecar looks again by itself")
	}
	return advice
}

// adviseDeletion is about a deletion that the driver has not done.
func adviseDeletion(message string) []string {
	switch {
	case !fault.IsFromDriver(message):
		return nil
	case fault.IsUnreachedIn(message):
		return []string{"see that the container of the driver runs, and that both have the volume in which its socket is; it is tried again by itself"}
	default:
		return []string{"it is tried again by itself until the driver has done it: its words, and its log, say what is to be put right; do not take the finalizer off, or the data stays at the storage and nobody knows of it"}
	}
}

// adviseVolume says what somebody can do about a volume that stays.
func adviseVolume(in provision.VolumeInput, step provision.VolumeStep) []string {
	switch s := step.(type) {
	case provision.WaitDetached:
		return []string{
			fmt.Sprintf("see what still uses the volume on node %s, and whether the external-attacher runs: kubectl get volumeattachments", s.Node),
		}
	case provision.Reject:
		return adviseError(s.Err)
	case provision.Ignore:
		v := in.Volume
		switch {
		case v == nil:
			return nil
		case v.DeletionTimestamp != nil && v.Status.Phase == corev1.VolumeBound:
			return []string{"delete the claim first: as long as it is bound, its volume stays"}
		case v.Status.Phase == corev1.VolumeFailed:
			return []string{"see the events of the PersistentVolume; set its reclaim policy, or delete it by hand when its data is not needed"}
		}
	}
	return nil
}
