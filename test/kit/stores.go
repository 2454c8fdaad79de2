// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"reflect"
	"slices"
	"sync"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Stores are the caches of one process. They follow the API at once, or behind it when Lag or Hold says
// so. Kinds without a field here are never cached by anybody.
type Stores struct {
	Claims            *kube.Store[*corev1.PersistentVolumeClaim]
	Volumes           *kube.Store[*corev1.PersistentVolume]
	StorageClasses    *kube.Store[*storagev1.StorageClass]
	AttributesClasses *kube.Store[*storagev1.VolumeAttributesClass]
	Nodes             *kube.Store[*corev1.Node]
	CSINodes          *kube.Store[*storagev1.CSINode]
	Attachments       *kube.Store[*storagev1.VolumeAttachment]
	Capacities        *kube.Store[*storagev1.CSIStorageCapacity]
	Snapshots         *kube.Store[*snapv1.VolumeSnapshot]
	SnapshotClasses   *kube.Store[*snapv1.VolumeSnapshotClass]
	Contents          *kube.Store[*kube.Content]
	Grants            *kube.Store[*kube.ReferenceGrant]

	// Driver is the one whose process has these caches: of others they keep less.
	Driver string
	// OfNode says that it serves one node, and keeps who made a volume besides.
	OfNode bool

	mu      sync.Mutex
	apply   map[string]func(Change)
	trim    map[string]func(kube.Object) kube.Object
	pending []late
	turn    int
	lag     int
	held    bool
	tell    func(Change)
	stop    func()
	kept    map[objectKey]kept
	touched []string
}

// late is a change that the caches have not seen yet.
type late struct {
	change Change
	due    int
}

// NewStores makes caches that follow an API server from now on, with what it has already.
func NewStores(api *API) *Stores {
	s := &Stores{Driver: DriverName, apply: map[string]func(Change){}, trim: map[string]func(kube.Object) kube.Object{}, kept: map[objectKey]kept{}}
	s.Claims = follow(s, kube.ClaimIndexes(), func(o *corev1.PersistentVolumeClaim) { kube.TrimClaim(s.Driver)(o) })
	s.Volumes = follow(s, kube.VolumeIndexes(), func(o *corev1.PersistentVolume) { s.trimVolume(o) })
	s.StorageClasses = follow(s, nil, kube.TrimApplied[*storagev1.StorageClass])
	s.AttributesClasses = follow(s, nil, kube.TrimApplied[*storagev1.VolumeAttributesClass])
	s.Nodes = follow(s, nil, kube.TrimNode)
	s.CSINodes = follow(s, nil, func(o *storagev1.CSINode) { kube.TrimCSINode(s.Driver)(o) })
	s.Attachments = follow(s, kube.AttachmentIndexes(), kube.TrimAttachment)
	s.Capacities = follow(s, kube.CapacityIndexes(), kube.TrimApplied[*storagev1.CSIStorageCapacity])
	s.Snapshots = follow(s, kube.SnapshotIndexes(), kube.TrimApplied[*snapv1.VolumeSnapshot])
	s.SnapshotClasses = follow(s, nil, kube.TrimApplied[*snapv1.VolumeSnapshotClass])
	s.Contents = follow(s, kube.ContentIndexes(), kube.TrimApplied[*kube.Content])
	s.Grants = follow(s, kube.GrantIndexes(), kube.TrimApplied[*kube.ReferenceGrant])
	s.stop = api.listen(s.receive)
	return s
}

func (s *Stores) trimVolume(v *corev1.PersistentVolume) {
	made := ""
	if s.OfNode && v.Spec.CSI != nil {
		made = v.Spec.CSI.VolumeAttributes[wellknown.VolumeAttributeIdentity]
	}
	if kube.TrimVolume(s.Driver)(v); made != "" {
		v.Spec.CSI.VolumeAttributes = map[string]string{wellknown.VolumeAttributeIdentity: made}
	}
}

// kept is what a cache holds of one object, and a copy that nobody else has.
type kept struct{ held, pristine kube.Object }

func (k kept) isTouched() bool {
	return k.held != nil && !reflect.DeepEqual(k.held, k.pristine)
}

// follow makes a store and the functions that bring a change into it, as short as real caches keep it.
func follow[T kube.Object](s *Stores, indexes map[string]kube.Index[T], trim func(T)) *kube.Store[T] {
	store, plural := kube.NewStore(indexes), kube.ResourceOf[T]().Plural
	s.trim[plural] = func(obj kube.Object) kube.Object {
		typed, ok := obj.(T)
		if !ok {
			return obj
		}
		short := typed.DeepCopyObject().(T)
		trim(short)
		return short
	}
	s.apply[plural] = func(change Change) {
		if shown, ok := change.New.(T); ok {
			store.Show(shown)
			return
		}
		last, _ := change.Old.(T)
		store.Drop(last)
	}
	return store
}

// keep notes what the cache holds from now on, and looks at what it held until now.
func (s *Stores) keep(change Change) {
	obj := change.New
	if obj == nil {
		obj = change.Old
	}
	at := objectKey{change.Resource.Plural, kube.KeyOf(obj)}
	s.look(at)
	delete(s.kept, at)
	if change.New != nil {
		s.kept[at] = kept{change.New, change.New.DeepCopyObject().(kube.Object)}
	}
}

func (s *Stores) look(at objectKey) {
	if s.kept[at].isTouched() {
		s.touched = append(s.touched, at.plural+" "+nameOf(at.key))
		delete(s.kept, at)
	}
}

// Touched lists the cached objects that somebody changed in place: they are shared with all rooms, and
// the server knows nothing of the change.
func (s *Stores) Touched() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at := range s.kept {
		s.look(at)
	}
	slices.Sort(s.touched)
	return s.touched
}

func (s *Stores) receive(change Change) {
	if s.apply[change.Resource.Plural] == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	trim := s.trim[change.Resource.Plural]
	change.Old, change.New = trim(change.Old), trim(change.New)
	s.pending = append(s.pending, late{change, s.turn + s.lag})
	s.deliver()
}

// deliver brings what is due into the caches, in order.
func (s *Stores) deliver() {
	for !s.held && len(s.pending) > 0 && s.pending[0].due <= s.turn {
		change := s.pending[0].change
		s.pending = s.pending[1:]
		s.keep(change)
		s.apply[change.Resource.Plural](change)
		if s.tell != nil {
			s.tell(change)
		}
	}
}

// Lag lets every later change reach the caches only after so many turns of the scheduler, as a slow
// watch does; 0 is at once.
func (s *Stores) Lag(turns int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lag = turns
}

// Hold stops the caches as they are, until Sync.
func (s *Stores) Hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = true
}

// Sync brings all changes into the caches, and ends Hold.
func (s *Stores) Sync() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = false
	for i := range s.pending {
		s.pending[i].due = s.turn
	}
	s.deliver()
}

// step is one turn of the scheduler.
func (s *Stores) step() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn++
	s.deliver()
}

// isBehind tells that changes wait to be seen.
func (s *Stores) isBehind() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.held && len(s.pending) > 0
}
