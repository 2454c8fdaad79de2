// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"encoding/json"
	"fmt"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Content is a VolumeSnapshotContent with the one field that newer CRDs have and client/v6 does not
// know, although it decides whether DeleteSnapshot may be called: the CSI spec forbids it for the
// members of a group. The field is only read; patches are differences of the v6 fields and leave it be.
type Content struct {
	snapv1.VolumeSnapshotContent `json:",inline"`

	groupHandle string
}

// GroupHandle is the handle of the group snapshot that the content is a member of, from the status or
// from the annotation of dynamic members. It is empty for ordinary contents.
func (c *Content) GroupHandle() string {
	if c.groupHandle != "" {
		return c.groupHandle
	}
	return c.Annotations[wellknown.AnnGroupSnapshotHandle]
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *Content) UnmarshalJSON(data []byte) error {
	c.groupHandle = ""
	var newer struct {
		Status struct {
			VolumeGroupSnapshotHandle string `json:"volumeGroupSnapshotHandle"`
		} `json:"status"`
	}
	if err := json.Unmarshal(data, &c.VolumeSnapshotContent); err != nil {
		return fmt.Errorf("decoding VolumeSnapshotContent: %w", err)
	}
	if !bytes.Contains(data, []byte("volumeGroupSnapshotHandle")) {
		return nil // as in nearly every one of thousands
	}
	if err := json.Unmarshal(data, &newer); err != nil {
		return fmt.Errorf("decoding VolumeSnapshotContent status: %w", err)
	}
	c.groupHandle = newer.Status.VolumeGroupSnapshotHandle
	return nil
}

// DeepCopyObject implements runtime.Object.
func (c *Content) DeepCopyObject() runtime.Object { return c.DeepCopy() }

// DeepCopy copies the content whole.
func (c *Content) DeepCopy() *Content {
	return &Content{VolumeSnapshotContent: *c.VolumeSnapshotContent.DeepCopy(), groupHandle: c.groupHandle}
}

// ContentList is a list of contents.
type ContentList = List[Content, *Content]

// packedContent is the form in a cache. The group handle stands beside the content, where no status is needed
// to hold it.
type packedContent struct {
	Content     *snapv1.VolumeSnapshotContent `json:"c"`
	GroupHandle string                        `json:"g,omitempty"`
}

func (c *Content) pack() ([]byte, error) {
	data, err := json.Marshal(packedContent{&c.VolumeSnapshotContent, c.groupHandle})
	return bytes.Clone(data), err
}

func (c *Content) unpack(data []byte) error {
	packed := packedContent{Content: &c.VolumeSnapshotContent}
	err := json.Unmarshal(data, &packed)
	c.groupHandle = packed.GroupHandle
	return err
}
