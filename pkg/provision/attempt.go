// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/topology"
)

// Attempt is one try to make one volume, complete: with it alone the call can be repeated unchanged and
// its PersistentVolume written, even when claim, class and source are gone by then. It holds no secrets.
// An Attempt is never changed once it was handed out; what changes makes a copy.
type Attempt struct {
	// Ref is the claim as the PersistentVolume names it.
	Ref *corev1.ObjectReference
	// Request is what is sent, without its secrets.
	Request *csi.CreateVolumeRequest
	// Secret holds the secrets of the request, nil when there are none.
	Secret *corev1.SecretReference
	// Volume is the PersistentVolume without what only the driver's answer can tell.
	Volume *corev1.PersistentVolume
	// Class is the StorageClass that the request was built from; empty when that is not known.
	Class types.UID
	// Node is the selected node that the request is meant for; empty when it is for no node.
	Node string
	// Topology tells whether the answer's places count.
	Topology bool
	// InTree tells that the volume is stored in the form from before the migration, by Migration.
	InTree    bool
	Migration Translator
	// Source is what the volume is made from, nil for an empty one.
	Source *Source
	// Warnings are to be told once for each cause: they say that the request is not quite what was asked for.
	Warnings []topology.Warning

	// Away says that the selected node is not where the data of the source is; empty when it is, or when that
	// is not known.
	Away string
	// Short says that the source holds more than is asked for; empty when it does not, as far as is known.
	Short string

	// Open tells that a call of this attempt may have made the volume.
	Open bool
	// Prompt counts the prompt repeats after the claim was gone, and NotBefore is when the next is due.
	Prompt    int
	NotBefore time.Time
	// Vague is since when the answers after that say nothing, and Told that it was told.
	Vague time.Time
	Told  bool
	// NoSecret is since when the secret is known not to exist while nobody waits for the volume any more,
	// and Bare that it was then asked for without.
	NoSecret time.Time
	Bare     bool
	// Freed tells that the source need not stay for this attempt: nobody waits, and the driver says that it has none.
	Freed bool
	// Full counts the answers in a row that there is no room, while the outcome is open.
	Full int
	// Parked tells that the node was given back: the request is repeated only once nobody waits any more.
	Parked bool
	// Prior is a parked attempt for the same claim, on another node.
	Prior *Attempt
	// Made is the driver's volume, once it has answered.
	Made *csi.Volume
	// Undoing is set while the removal of a wrong volume has no certain outcome.
	Undoing *Undoing
}

// Name is the name of the volume, for the driver and for Kubernetes.
func (a *Attempt) Name() string { return a.Request.GetName() }

// WithSecrets is the request as it is sent. The parts are shared with the attempt, which stays without.
func (a *Attempt) WithSecrets(secrets map[string]string) *csi.CreateVolumeRequest {
	return &csi.CreateVolumeRequest{
		Name:                      a.Request.GetName(),
		CapacityRange:             a.Request.GetCapacityRange(),
		VolumeCapabilities:        a.Request.GetVolumeCapabilities(),
		Parameters:                a.Request.GetParameters(),
		Secrets:                   secrets,
		VolumeContentSource:       a.Request.GetVolumeContentSource(),
		AccessibilityRequirements: a.Request.GetAccessibilityRequirements(),
		MutableParameters:         a.Request.GetMutableParameters(),
	}
}

// asMade is the attempt after the driver's good answer.
func (a *Attempt) asMade(volume *csi.Volume) *Attempt {
	next := *a
	next.Open, next.Made, next.NotBefore = true, volume, time.Time{}
	return &next
}

// asOpen is the attempt after an answer that left the outcome open.
func (a *Attempt) asOpen() *Attempt {
	next := *a
	next.Open, next.Full, next.NotBefore = true, 0, time.Time{}
	return &next
}

// Unanswered is the attempt after a call of which nobody here knows the answer, as the next process would find it.
func (a *Attempt) Unanswered() *Attempt { return a.asOpen() }

// Unmade is the attempt whose good answer is of no use. A removal without an answer may have been done, so that the driver is asked anew.
// That the call went without the secret says nothing of the removal, which has a try of its own.
func (a *Attempt) Unmade() *Attempt {
	next := *a.asOpen()
	next.Made, next.Bare = nil, false
	return &next
}

// asFreed is the attempt after the driver has said that there is no such source.
func (a *Attempt) asFreed() *Attempt {
	next := *a
	next.Freed = next.Source != nil
	return &next
}

// asPrompted is asOpen with one more of the repeats that are counted.
func (a *Attempt) asPrompted(due time.Time) *Attempt {
	next := *a.asOpen()
	next.Prompt, next.NotBefore = a.Prompt+1, due
	return &next
}

// isSameCall tells whether the driver cannot tell the calls of two attempts apart.
func (a *Attempt) isSameCall(b *Attempt) bool {
	sameSecret := a.Secret == b.Secret || a.Secret != nil && b.Secret != nil && *a.Secret == *b.Secret
	return a.Node == b.Node && sameSecret && proto.Equal(a.Request, b.Request)
}
