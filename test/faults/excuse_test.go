// SPDX-License-Identifier: Apache-2.0

package faults

import corev1 "k8s.io/api/core/v1"

// standing are what must not be when all faults are over: orphans, what does not go, and what does not come although nothing is
// in its way.
func (p *play) standing(v view) []string {
	all := v.orphans()
	for _, u := range v.leaving() {
		all = append(all, u.what)
	}
	x := p.newExcuses(v)
	for _, u := range v.unfinished() {
		if !x.mayWait(u.name) {
			all = append(all, u.what)
		}
	}
	return all
}

// excuses know for which lives something is missing that nobody can bring back: their source is gone, or the driver has lost
// what they had.
type excuses struct {
	lives     map[string]life
	claims    map[string]*corev1.PersistentVolumeClaim
	snapshots map[string]bool
	ready     map[string]bool
	// handles are those of what the lives have at the driver.
	handles   map[string]string
	forgotten map[string]bool
}

func (p *play) newExcuses(v view) *excuses {
	x := &excuses{
		lives: map[string]life{}, claims: map[string]*corev1.PersistentVolumeClaim{}, snapshots: map[string]bool{},
		ready: map[string]bool{}, handles: map[string]string{}, forgotten: p.forgotten,
	}
	for _, l := range p.text.lives {
		x.lives[l.id] = l
	}
	for i, c := range v.claims {
		x.claims[c.Name] = &v.claims[i]
	}
	for _, o := range v.volumes {
		if o.Spec.ClaimRef != nil {
			x.handles[o.Spec.ClaimRef.Name] = o.Spec.CSI.VolumeHandle
		}
	}
	for _, s := range v.snapshots {
		x.snapshots[s.Name] = s.DeletionTimestamp == nil
		x.ready[s.Name] = isReady(&s)
	}
	for _, o := range v.contents {
		x.handles[o.Spec.VolumeSnapshotRef.Name] = handleOf(&o)
	}
	return x
}

// mayWait says whether a life that is not finished has a reason for it.
func (x *excuses) mayWait(name string) bool {
	l, ok := x.lives[name]
	switch {
	case !ok:
		return false
	case x.forgotten[x.handles[name]]:
		return true
	case l.kind == plain, l.kind == imported:
		return false
	case l.kind == restored:
		return !x.snapshots[l.from] || !x.ready[l.from] && x.mayWait(l.from)
	default:
		source := x.claims[l.from]
		return source == nil || source.DeletionTimestamp != nil || source.Status.Phase != corev1.ClaimBound && x.mayWait(l.from)
	}
}
