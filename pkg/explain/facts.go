// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"strings"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/pkg/binding"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// describe tells the state of the claim.
func (l *claimLook) describe() {
	c := l.claim
	l.report.Object = Object{Kind: kindClaim, Namespace: c.Namespace, Name: c.Name}
	state := []Fact{{"state", l.since(c, string(c.Status.Phase))}, {"class", l.className()}}
	var modes []string
	for _, m := range c.Spec.AccessModes {
		modes = append(modes, string(m))
	}
	size := c.Spec.Resources.Requests[corev1.ResourceStorage]
	asks := append([]string{size.String()}, modes...)
	if c.Spec.VolumeMode != nil {
		asks = append(asks, string(*c.Spec.VolumeMode))
	}
	state = append(state, Fact{"asks for", strings.Join(asks, ", ")})
	if from, _ := provision.SourceOf(c); from != nil {
		state = append(state, Fact{"made from", sourceName(*from)})
	}
	if node := annotation(c, wellknown.AnnSelectedNode); node != "" {
		state = append(state, Fact{"selected node", node})
	}
	if c.Spec.VolumeName != "" {
		state = append(state, Fact{"volume", c.Spec.VolumeName})
	}
	l.report.Object.State = state
}

func (l *claimLook) className() string {
	name := provision.ClassName(l.claim)
	switch {
	case name == "":
		return "none"
	case l.class == nil && l.classErr != nil:
		return name + " (could not be read)"
	case l.class == nil:
		return name + " (does not exist)"
	}
	mode := "Immediate"
	if l.class.VolumeBindingMode != nil {
		mode = string(*l.class.VolumeBindingMode)
	}
	return fmt.Sprintf("%s (of %s, %s)", name, l.class.Provisioner, mode)
}

// since says how long an object has been there, or has been going.
func (l *look) since(obj metav1.Object, phase string) string {
	if phase == "" {
		phase = "without a status"
	}
	text := fmt.Sprintf("%s, %s old", phase, span(l.Clock.Since(obj.GetCreationTimestamp().Time)))
	if at := obj.GetDeletionTimestamp(); at != nil {
		text += fmt.Sprintf(", being deleted for %s", span(l.Clock.Since(at.Time)))
	}
	return text
}

// describe tells the state of the snapshot.
func (l *snapshotLook) describe() {
	s := l.snapshot
	l.report.Object = Object{Kind: wellknown.KindVolumeSnapshot, Namespace: s.Namespace, Name: s.Name}
	phase := "not ready"
	if s.Status != nil && s.Status.ReadyToUse != nil && *s.Status.ReadyToUse {
		phase = "ready"
	}
	state := []Fact{{"state", l.since(s, phase)}, {"class", l.className()}}
	if name := s.Spec.Source.PersistentVolumeClaimName; name != nil {
		state = append(state, Fact{"taken from", kindClaim + " " + *name})
	}
	if name := s.Spec.Source.VolumeSnapshotContentName; name != nil {
		state = append(state, Fact{"imported from", kindContent + " " + *name})
	}
	if s.Status != nil && s.Status.Error != nil && s.Status.Error.Message != nil {
		state = append(state, Fact{errorInStatus, *s.Status.Error.Message})
	}
	if by := statusWriter(s); by != "" {
		state = append(state, Fact{"status written by", by})
	}
	l.report.Object.State = state
}

// className is the class that the snapshot names. What is imported has none unless somebody asks for one, and the
// default is not for it.
func (l *snapshotLook) className() string {
	switch named := l.snapshot.Spec.VolumeSnapshotClassName; {
	case named != nil:
		return *named
	case !binding.IsPreProvisioned(l.snapshot):
		return "none named, the default is taken"
	case l.content == nil:
		return "none named, and none needed"
	case l.content.Spec.VolumeSnapshotClassName != nil:
		return "none named; its VolumeSnapshotContent has " + *l.content.Spec.VolumeSnapshotClassName
	default:
		return "none named, and its VolumeSnapshotContent has none"
	}
}

// statusWriter is the program that last wrote the status: whoever binds this snapshot.
func statusWriter(s *snapv1.VolumeSnapshot) string {
	var last metav1.ManagedFieldsEntry
	for _, entry := range s.ManagedFields {
		if entry.Subresource == "status" && (last.Time == nil || entry.Time != nil && entry.Time.After(last.Time.Time)) {
			last = entry
		}
	}
	return last.Manager
}

func contentFacts(c *kube.Content) []Fact {
	state := "not ready"
	switch {
	case c.Status != nil && c.Status.ReadyToUse != nil && *c.Status.ReadyToUse:
		state = "ready"
	case c.Status == nil:
		state = "without a status"
	}
	if c.DeletionTimestamp != nil {
		state += ", being deleted"
	}
	class := cmp.Or(ptr.Deref(c.Spec.VolumeSnapshotClassName, ""), "none")
	facts := []Fact{{"state", state}, {"driver", c.Spec.Driver}, {"class", class}, {"deletion policy", string(c.Spec.DeletionPolicy)}}
	if handle := handleFact(c); handle != "" {
		facts = append(facts, Fact{"snapshot", handle})
	}
	if c.Status != nil && c.Status.Error != nil && c.Status.Error.Message != nil {
		facts = append(facts, Fact{errorInStatus, *c.Status.Error.Message})
	}
	return facts
}

// handleFact is what the driver calls the snapshot, and who says so where the driver has not.
func handleFact(c *kube.Content) string {
	switch source := c.Spec.Source.SnapshotHandle; {
	case c.Status != nil && c.Status.SnapshotHandle != nil:
		return *c.Status.SnapshotHandle
	case source != nil:
		return *source + ", as whoever made the content says"
	}
	return ""
}
