// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/json"
	"fmt"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/binding"
	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/params"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// nextNew is for a snapshot of a claim that has no content.
func nextNew(in SnapshotInput) SnapshotStep {
	s := in.Snapshot
	if isSettled(s) {
		if !in.ContentLive {
			return FetchContent{binding.ContentName(s)}
		}
		// Taking it again would put other data under the old creation time.
		return reject(in, wellknown.ReasonSnapshotContentMissing, "VolumeSnapshotContent is missing", adviseVerdict(in, binding.Verdict{}))
	}
	class := in.Class
	if s.Spec.VolumeSnapshotClassName == nil {
		chosen, step := chooseClass(in)
		if step != nil {
			return step
		}
		class = chosen
	}
	if class == nil {
		return rejectClass(in, *s.Spec.VolumeSnapshotClassName)
	}
	// The finalizers come before anything exists that they protect.
	protect := Protect{Finalizers: missingFinalizers(s, class.DeletionPolicy)}
	if s.Spec.VolumeSnapshotClassName == nil {
		protect.Class = class.Name
	}
	if protect.Class != "" || len(protect.Finalizers) > 0 {
		return protect
	}
	return nextContent(in, class)
}

// chooseClass gives the default class, or the step that must come first.
func chooseClass(in SnapshotInput) (*snapv1.VolumeSnapshotClass, SnapshotStep) {
	err := checkClaim(in)
	if err == nil && !in.VolumeRead {
		return nil, FetchVolume{in.Claim.Spec.VolumeName}
	}
	if err == nil {
		err = checkVolume(in)
	}
	if err == nil {
		err = checkDriver(in.Volume)
	}
	var class *snapv1.VolumeSnapshotClass
	if err == nil {
		class, err = defaultClass(in, in.Volume.Spec.CSI.Driver)
	}
	if err != nil {
		return nil, rejection(in, Reject{
			Reason: wellknown.ReasonSetDefaultSnapshotClassFailed, Message: fmt.Sprintf("Failed to set default snapshot class with error %s", err), Advice: adviceOf(err),
			Waiting: fault.IsWaiting(err),
		}, true)
	}
	return class, nil
}

// nextContent protects the source and writes the content, or says what is in the way.
func nextContent(in SnapshotInput, class *snapv1.VolumeSnapshotClass) SnapshotStep {
	if step := nextSource(in); step != nil {
		return step
	}
	content, step := buildContent(in, class)
	switch {
	case step != nil:
		return step
	case !in.SnapshotLive:
		// An old copy may not show that the snapshot was taken long ago, or that it is being deleted.
		return FetchSnapshot{}
	default:
		return CreateContent{content}
	}
}

// nextSource returns nil when the source is there and protected. A claim without a volume is not: there is
// nothing in it to be kept, and whoever deletes it would wait for a snapshot that will never be taken.
func nextSource(in SnapshotInput) SnapshotStep {
	s, claim := in.Snapshot, in.Claim
	if claim == nil {
		return rejectCreation(in, fmt.Errorf("snapshot controller failed to update %s on API server: %w", s.Name, noClaim(in)))
	}
	protected := has(claim.Finalizers, wellknown.FinalizerSourceClaim)
	if protected && claim.DeletionTimestamp != nil && claim.Spec.VolumeName == "" {
		return ReleaseSource{}
	}
	if err := checkClaim(in); err != nil {
		return rejectInput(in, err)
	}
	if !in.VolumeRead {
		return FetchVolume{claim.Spec.VolumeName}
	}
	if err := checkVolume(in); err != nil {
		return rejectInput(in, err)
	}
	switch {
	case protected:
		return nil
	case claim.DeletionTimestamp != nil:
		return rejectCreation(in, advise(fmt.Errorf(
			"snapshot controller failed to update %s on API server: cannot add finalizer on claim because it is being deleted", claim.Name),
			"claim %s/%s is going, and no new snapshot of it is begun: name another one %s", claim.Namespace, claim.Name, newSnapshot))
	default:
		return ProtectSource{}
	}
}

func rejectCreation(in SnapshotInput, err error) SnapshotStep {
	return RejectCreation(in, err)
}

// rejectInput words the errors about what the content is to be made of.
func rejectInput(in SnapshotInput, err error) SnapshotStep {
	step := RejectCreation(in, advised{fmt.Errorf("failed to get input parameters to create snapshot %s: %q", in.Snapshot.Name, err.Error()), adviceOf(err)})
	step.Waiting = fault.IsWaiting(err)
	return step
}

func buildContent(in SnapshotInput, class *snapv1.VolumeSnapshotClass) (*snapv1.VolumeSnapshotContent, SnapshotStep) {
	s, volume := in.Snapshot, in.Volume
	name := wellknown.ContentName(string(s.UID))
	secret, err := params.ResolveSecret(params.Snapshotter, class.Parameters, params.SnapshotTokens(name, s.Namespace, s.Name))
	if err != nil {
		return nil, rejectInput(in, blameClass(class, err))
	}
	// The parameters are checked before anything is marked: a content with a bad class must stay deletable.
	forDriver, err := driverParameters(class)
	if err != nil {
		return nil, rejectInput(in, err)
	}
	if err := checkDriver(volume); err != nil {
		return nil, rejectCreation(in, err)
	}
	if volume.Spec.CSI.Driver != class.Driver {
		return nil, rejectCreation(in, advise(fmt.Errorf("volume %s is of driver %q, but VolumeSnapshotClass %s is of driver %q",
			volume.Name, volume.Spec.CSI.Driver, class.Name, class.Driver), "name a VolumeSnapshotClass of driver %s %s", volume.Spec.CSI.Driver, newSnapshot))
	}
	if in.NodeErr != nil {
		return nil, rejectCreation(in, in.NodeErr)
	}
	content := contentOf(in, class)
	if secret != nil {
		for key, value := range annotationsOf(secret) {
			content.Annotations[key] = value
		}
	}
	if places := BuildSourceTopology(volume); places != "" {
		content.Annotations[wellknown.AnnSourceTopology] = places
	}
	if class.Driver == in.Options.Driver {
		// The create of our own other half is announced here, which saves it a write, and its parameters
		// and its name are recorded, so that every try sends the same request whatever becomes of class and flags.
		content.Annotations[wellknown.AnnBeingCreated] = wellknown.AnnMarkYes
		content.Annotations[wellknown.AnnSnapshotParameters] = encodeParameters(forDriver)
		if in.Options.NamePrefix != "" {
			content.Annotations[wellknown.AnnSnapshotName] = wellknown.Name(in.Options.NamePrefix, string(s.UID), in.Options.NameLength)
		}
	}
	return content, nil
}

func contentOf(in SnapshotInput, class *snapv1.VolumeSnapshotClass) *snapv1.VolumeSnapshotContent {
	s, volume := in.Snapshot, in.Volume
	handle, className := volume.Spec.CSI.VolumeHandle, class.Name
	content := &snapv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{
			Name:        wellknown.ContentName(string(s.UID)),
			Annotations: map[string]string{wellknown.AnnMadeAt: madeAt(in.Now)},
			// From the first moment: without it a content could be deleted while the driver works.
			Finalizers: []string{wellknown.FinalizerContent},
		},
		Spec: snapv1.VolumeSnapshotContentSpec{
			VolumeSnapshotRef: corev1.ObjectReference{
				Kind: wellknown.KindVolumeSnapshot, APIVersion: snapv1.SchemeGroupVersion.String(),
				Namespace: s.Namespace, Name: s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion,
			},
			DeletionPolicy: class.DeletionPolicy, Driver: class.Driver, VolumeSnapshotClassName: &className,
			Source: snapv1.VolumeSnapshotContentSource{VolumeHandle: &handle},
		},
	}
	if in.Options.PreventVolumeModeConversion && volume.Spec.VolumeMode != nil {
		mode := *volume.Spec.VolumeMode
		content.Spec.SourceVolumeMode = &mode
	}
	if in.Node != "" {
		content.Labels = map[string]string{wellknown.LabelManagedBy: wellknown.NodeLabel(in.Node)}
	}
	return content
}

// driverParameters are those that the driver may see.
func driverParameters(class *snapv1.VolumeSnapshotClass) (map[string]string, error) {
	forDriver, err := params.DriverParameters(class.Parameters, params.SnapshotKeys())
	if err != nil {
		return nil, blameClass(class, fmt.Errorf("failed to remove CSI Parameters of prefixed keys: %w", err))
	}
	return forDriver, nil
}

// encodeParameters writes a map as JSON, which cannot fail for strings.
func encodeParameters(parameters map[string]string) string {
	data, _ := json.Marshal(parameters)
	return string(data)
}

func annotationsOf(secret *corev1.SecretReference) map[string]string {
	return map[string]string{
		wellknown.AnnSnapshotDeletionSecretName:      secret.Name,
		wellknown.AnnSnapshotDeletionSecretNamespace: secret.Namespace,
	}
}

// RejectCreation shows that the API server refused the content.
func RejectCreation(in SnapshotInput, err error) Reject {
	return reject(in, wellknown.ReasonSnapshotContentCreationFailed, fmt.Sprintf("Failed to create snapshot content with error %s", err), adviceOf(err))
}

// RejectBinding shows that the API server refused the binding.
func RejectBinding(in SnapshotInput, err error) Reject {
	return reject(in, wellknown.ReasonSnapshotBindFailed, fmt.Sprintf("Snapshot failed to bind VolumeSnapshotContent, %s", err), adviceOf(err))
}
