// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
)

// requestOf is the call that a step sends, or nil. Steps carry references to secrets, never secrets.
func requestOf(step any) *Request {
	switch s := step.(type) {
	case provision.Create:
		return createVolume(s.Attempt)
	case provision.Resume:
		return createVolume(s.Attempt)
	case provision.Delete:
		return &Request{Call: "DeleteVolume", Handle: s.Handle, Secret: secretName(s.Secret)}
	case snapshot.Create:
		return createSnapshot(s)
	case snapshot.Delete:
		return &Request{Call: "DeleteSnapshot", Handle: s.Handle, Secret: secretName(s.Secret)}
	}
	return nil
}

func createVolume(a *provision.Attempt) *Request {
	if a == nil {
		return nil
	}
	r := a.Request
	request := &Request{
		Call: "CreateVolume", Name: r.GetName(), Bytes: r.GetCapacityRange().GetRequiredBytes(),
		Parameters: r.GetParameters(), Mutable: r.GetMutableParameters(), Secret: secretName(a.Secret),
		Requisite: places(r.GetAccessibilityRequirements().GetRequisite()),
		Preferred: places(r.GetAccessibilityRequirements().GetPreferred()),
	}
	for _, c := range r.GetVolumeCapabilities() {
		request.Capabilities = append(request.Capabilities, capabilityName(c))
	}
	for _, w := range a.Warnings {
		request.Warnings = append(request.Warnings, w.Text)
	}
	switch source := r.GetVolumeContentSource(); {
	case source.GetSnapshot() != nil:
		request.Source = "snapshot " + source.GetSnapshot().GetSnapshotId()
	case source.GetVolume() != nil:
		request.Source = "volume " + source.GetVolume().GetVolumeId()
	}
	return request
}

func createSnapshot(s snapshot.Create) *Request {
	return &Request{
		Call: "CreateSnapshot", Name: s.Request.GetName(), Handle: s.Request.GetSourceVolumeId(),
		Parameters: s.Request.GetParameters(), Secret: secretName(s.Secret),
	}
}

func secretName(ref *corev1.SecretReference) string {
	if ref == nil {
		return ""
	}
	return ref.Namespace + "/" + ref.Name
}

func capabilityName(c *csi.VolumeCapability) string {
	mode := c.GetAccessMode().GetMode().String()
	mount := c.GetMount()
	switch {
	case mount == nil:
		return mode + " block"
	case mount.GetFsType() == "" && len(mount.GetMountFlags()) == 0:
		return mode + " mount"
	default:
		return strings.TrimSpace(mode + " mount " + mount.GetFsType() + " " + strings.Join(mount.GetMountFlags(), ","))
	}
}

func places(topologies []*csi.Topology) []string {
	var all []string
	for _, t := range topologies {
		segments := t.GetSegments()
		var parts []string
		for _, key := range slices.Sorted(maps.Keys(segments)) {
			parts = append(parts, fmt.Sprintf("%s=%s", key, segments[key]))
		}
		all = append(all, strings.Join(parts, ","))
	}
	return all
}
