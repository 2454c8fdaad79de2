// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/attempt"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
)

// Settle sees to it that no later process looks for the volume of a PersistentVolume any more, which has to
// wait for that before its volume is deleted or our finalizer goes: an attempt that is resumed after
// that would make the volume anew, or delete one that somebody has kept. False means that the attempt is
// not over yet. It goes by the claim, whatever the PersistentVolume is called and whatever it has: who finds the
// volume of an attempt that hangs may have written a PersistentVolume for it by hand. And it goes by the name: who
// keeps a volume takes it off its claim, or gives it to another one.
func (c *Controller) Settle(ctx context.Context, volume *corev1.PersistentVolume) (bool, error) {
	if c.record == nil {
		return true, nil
	}
	if err := c.record.AwaitBegun(ctx); err != nil {
		return false, err
	}
	for _, claim := range c.makers(volume) {
		if settled, err := c.settleClaim(ctx, claim); err != nil || !settled {
			return false, err
		}
		if err := c.settleElsewhere(ctx, volume, claim.UID); err != nil {
			return false, err
		}
	}
	return true, nil
}

// settleElsewhere is settleClaim for the record of the node on which the volume was made, and whose process has not seen to its end: it may have gone with
// the node, and come back with it.
func (c *Controller) settleElsewhere(ctx context.Context, volume *corev1.PersistentVolume, uid types.UID) error {
	made := provision.MadeOn(volume, c.DriverName)
	if c.config.Node == "" || made == "" || made == c.config.Node {
		return nil
	}
	return attempt.Disclaim(ctx, c.Client, c.Record.Namespace, RecordName(c.DriverName, made), uid)
}

// makers are the claims that a PersistentVolume may have been made for. All but the UID may be unknown.
func (c *Controller) makers(volume *corev1.PersistentVolume) []*corev1.ObjectReference {
	var claims []*corev1.ObjectReference
	if ref := volume.Spec.ClaimRef; ref != nil && ref.UID != "" {
		claims = append(claims, ref)
		if strings.HasSuffix(volume.Name, "-"+string(ref.UID)) {
			return claims
		}
	}
	claims = append(claims, c.memory.named(volume.Name)...)
	for _, uid := range c.record.Claims() {
		known := func(ref *corev1.ObjectReference) bool { return ref.UID == uid }
		if c.isNamedFor(volume.Name, uid) && !slices.ContainsFunc(claims, known) {
			claims = append(claims, &corev1.ObjectReference{UID: uid})
		}
	}
	if uid := uidIn(volume.Name); uid != "" && !slices.ContainsFunc(claims, func(ref *corev1.ObjectReference) bool { return ref.UID == uid }) {
		claims = append(claims, &corev1.ObjectReference{UID: uid})
	}
	return claims
}

// isNamedFor tells that a name can be that of the volume of a claim, whatever the claim is called.
func (c *Controller) isNamedFor(name string, uid types.UID) bool {
	if c.config.NameTemplate != "" {
		return strings.Contains(name, string(uid))
	}
	return slices.Contains(provision.VolumeNames(c.config.Options, &corev1.ObjectReference{UID: uid}), name)
}

// uuid is a UID at the end of the name of what was made for its object.
var uuid = regexp.MustCompile(`-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$`)

func uidIn(name string) types.UID {
	if found := uuid.FindStringSubmatch(name); found != nil {
		return types.UID(found[1])
	}
	return ""
}

// settleClaim is Settle for one claim.
func (c *Controller) settleClaim(ctx context.Context, claim *corev1.ObjectReference) (bool, error) {
	if !c.memory.beginSettling(claim.UID) {
		if open := c.memory.open(claim.UID); open != nil {
			claim = open.Ref // what a PersistentVolume says of its claim may have been edited
		}
		if claim.Name != "" {
			// A call may be under way this very moment; the look at the claim finds the PersistentVolume.
			c.queue.Add(keyOfRef(claim))
		}
		return false, nil
	}
	defer c.memory.endSettling(claim.UID)
	if err := c.record.Settle(ctx, claim.UID); err != nil {
		return false, fmt.Errorf("settling the attempt for claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return true, nil
}

// named are the claims of the attempts whose volume has a name.
func (m *memory) named(name string) (claims []*corev1.ObjectReference) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, open := range m.all() {
		if hasName(open, name) {
			claims = append(claims, open.Ref)
		}
	}
	return claims
}

// hasName tells that an attempt, or one that stands behind it, asks for a volume of a name.
func hasName(open *provision.Attempt, name string) bool {
	for ; open != nil; open = open.Prior {
		if open.Name() == name {
			return true
		}
	}
	return false
}
