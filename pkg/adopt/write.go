// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// CreateAll does what the plan says and tells of each thing that it did. The content comes first: a snapshot that
// names none shows an error to its user. A content without its snapshot waits, and is deleted by nobody. The content
// whose place was taken goes last; until then it is kept, and two contents have the snapshot, of which the old one
// never deletes it.
func (p *Plan) CreateAll(ctx context.Context, c kube.Client, out io.Writer) error {
	if p.IsDone() {
		return tell(out, "VolumeSnapshot %s has VolumeSnapshotContent %s already: nothing to do", kube.IndexValue(p.order.key()), p.content)
	}
	if p.create != nil {
		if err := created(kube.Create(ctx, c, p.create)); err != nil {
			return again("creating VolumeSnapshotContent "+p.create.Name, err)
		}
		if err := tell(out, "VolumeSnapshotContent %s created: %s", p.create.Name, describe(p.create)); err != nil {
			return err
		}
	}
	if p.free != nil {
		if _, err := kube.Patch(ctx, c, p.free, p.edit); err != nil {
			return again("changing VolumeSnapshotContent "+p.free.Name, err)
		}
		if err := tell(out, "VolumeSnapshotContent %s changed", p.free.Name); err != nil {
			return err
		}
	}
	if p.snapshot != nil {
		if err := created(kube.Create(ctx, c, p.snapshot)); err != nil {
			return p.halfway("creating VolumeSnapshot "+kube.IndexValue(p.order.key()), err)
		}
		if err := tell(out, "VolumeSnapshot %s created", kube.IndexValue(p.order.key())); err != nil {
			return err
		}
	}
	if p.drop != nil {
		return p.deleteOld(ctx, c, out)
	}
	return nil
}

func (p *Plan) deleteOld(ctx context.Context, c kube.Client, out io.Writer) error {
	// The version that was read says Retain; of any other this is not known, and the server refuses it.
	if err := kube.Delete(ctx, c, p.drop); err != nil && !kube.IsGone(err) {
		return p.halfway("deleting VolumeSnapshotContent "+p.drop.Name+", whose place is taken", err)
	}
	return tell(out, "VolumeSnapshotContent %s deleted; the snapshot at the driver is kept", p.drop.Name)
}

func created[T kube.Object](_ T, err error) error { return err }

// again says what helps when somebody else was quicker.
func again(doing string, err error) error {
	if kube.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("%s: somebody else was at it meanwhile, look and ask again: %w", doing, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// halfway says what is there when a write after the first has failed. Nothing is taken back: what others may have heard of is
// not deleted on a guess.
func (p *Plan) halfway(doing string, err error) error {
	return fmt.Errorf("%w; VolumeSnapshotContent %s is there and stays, for VolumeSnapshot %s: the same command, given again, completes the import", again(doing, err), p.content, kube.IndexValue(p.order.key()))
}

// describe says what a content is for, which the class or the content before it may have decided.
func describe(c *kube.Content) string {
	class := "without a class"
	if name := c.Spec.VolumeSnapshotClassName; name != nil {
		class = "of class " + *name
	}
	return fmt.Sprintf("snapshot %s of driver %s, %s, deletionPolicy %s", handleOf(c), c.Spec.Driver, class, c.Spec.DeletionPolicy)
}

func tell(out io.Writer, format string, args ...any) error {
	_, err := fmt.Fprintf(out, format+"\n", args...)
	return err
}

// WriteYAML shows the plan as kubectl would take it: what is created as documents, what is changed or deleted as
// commands in comments, in the order in which it has to be done.
func (p *Plan) WriteYAML(out io.Writer) error {
	var text strings.Builder
	if p.IsDone() {
		fmt.Fprintf(&text, "# VolumeSnapshot %s has VolumeSnapshotContent %s already: nothing to do\n", kube.IndexValue(p.order.key()), p.content)
	}
	if p.free != nil {
		patch, err := p.patchText()
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "# kubectl patch volumesnapshotcontent %s --type=merge -p '%s'\n", p.free.Name, patch)
	}
	for _, obj := range []struct {
		there bool
		kube.Object
	}{{p.create != nil, p.create}, {p.snapshot != nil, p.snapshot}} {
		if !obj.there {
			continue
		}
		document, err := manifest(obj.Object)
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "---\n%s", document)
	}
	if p.drop != nil {
		fmt.Fprintf(&text, "# then: kubectl delete volumesnapshotcontent %s\n", p.drop.Name)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// patchText is what changes of the content, written by hand so that a reader sees the fields that matter.
func (p *Plan) patchText() (string, error) {
	edited := p.free.DeepCopy()
	p.edit(edited)
	spec := map[string]any{"volumeSnapshotRef": map[string]any{
		"namespace": edited.Spec.VolumeSnapshotRef.Namespace, "name": edited.Spec.VolumeSnapshotRef.Name, "uid": nil,
	}}
	if p.isBound(p.free) {
		delete(spec, "volumeSnapshotRef")
	}
	if edited.Spec.DeletionPolicy != p.free.Spec.DeletionPolicy {
		spec["deletionPolicy"] = edited.Spec.DeletionPolicy
	}
	patch := map[string]any{"metadata": map[string]any{"resourceVersion": p.free.ResourceVersion}, "spec": spec}
	if removed := removedAnnotations(p.free, edited); len(removed) > 0 {
		patch["metadata"].(map[string]any)["annotations"] = removed
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return "", fmt.Errorf("encoding the change: %w", err)
	}
	return string(data), nil
}

func removedAnnotations(from, to *kube.Content) map[string]any {
	removed := map[string]any{}
	for key := range from.Annotations {
		if _, kept := to.Annotations[key]; !kept {
			removed[key] = nil
		}
	}
	return removed
}

// manifest leaves out what only the API server fills in.
func manifest(obj kube.Object) ([]byte, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", obj, err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("encoding %T: %w", obj, err)
	}
	delete(fields, "status")
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp")
	}
	if spec, ok := fields["spec"].(map[string]any); ok {
		maps.DeleteFunc(spec, func(_ string, value any) bool { return value == nil })
	}
	document, err := yaml.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", obj, err)
	}
	return document, nil
}
