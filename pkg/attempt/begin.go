// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// beginTries is how often a conflict on one object is tried again at once.
const beginTries = 5

// Begin takes the record over and tells of what is on it, but for what this process has put on it already.
// The new epoch is written to the first object, then to every other one, each under the resource version:
// what a former writer still has on its way arrives before that, and is read here, or is refused. An object
// that it makes after that has no entries.
//
// Without the right to write there is nothing to tell of, and the record is kept in memory only.
func (r *Record) Begin(ctx context.Context) error {
	if err := r.Check(); err != nil {
		return err
	}
	found, err := r.takeRecord(ctx)
	switch {
	case apierrors.IsForbidden(err):
		r.warn(ctx, err)
	case err != nil:
		return fmt.Errorf("taking over the record of open attempts: %w", err)
	default:
		r.tell(ctx, found)
	}
	r.once.Do(func() { close(r.begun) })
	return nil
}

// tell passes on what was found. Until that has come to its end nobody writes over it, and who takes it off does so because it is over.
func (r *Record) tell(ctx context.Context, found []Entry) {
	if len(found) > 0 && r.options.Found != nil {
		r.options.Found(ctx, found)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.entries {
		e.untold = false
	}
	r.telling = false
}

func (r *Record) takeRecord(ctx context.Context) ([]Entry, error) {
	first, err := r.takeFirst(ctx)
	if err != nil {
		return nil, err
	}
	epoch := first.Data[epochKey]
	objects := []*corev1.ConfigMap{first}
	for _, s := range r.shards[1:] {
		object, err := r.takeOver(ctx, s.key, epoch)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	if slices.ContainsFunc(objects[1:], func(o *corev1.ConfigMap) bool { return o != nil }) {
		if err := r.confirm(ctx, epoch); err != nil {
			return nil, err
		}
	}
	return r.load(epoch, objects), nil
}

// confirm makes sure that nobody has begun while this process took over one object after another: it would go on with what the other has begun, and
// some of that costs no write by which it would notice.
func (r *Record) confirm(ctx context.Context, epoch string) error {
	first, err := kube.Fetch[*corev1.ConfigMap](ctx, r.options.Client, r.shards[0].key)
	if err != nil || first.Data[epochKey] == epoch {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.enter(foreign)
	return ErrForeign
}

// takeFirst writes the next epoch to the first object, and makes that object if need be.
func (r *Record) takeFirst(ctx context.Context) (*corev1.ConfigMap, error) {
	var err error
	for range beginTries {
		var object *corev1.ConfigMap
		object, err = kube.Fetch[*corev1.ConfigMap](ctx, r.options.Client, r.shards[0].key)
		epoch := r.nextEpoch(object.Data[epochKey])
		switch {
		case err == nil && r.isOvertaken(object):
			return nil, ErrForeign
		case apierrors.IsNotFound(err):
			object, err = r.create(ctx, r.shards[0].key, map[string]string{epochKey: epoch})
		case err == nil:
			object, err = kube.PatchData(ctx, r.options.Client, object, r.taking(object, epoch))
		}
		if err == nil || !apierrors.IsAlreadyExists(err) && !isOutrun(err) {
			return object, err
		}
	}
	return nil, err
}

// isOvertaken tells that another process took over while this one had no right to write.
func (r *Record) isOvertaken(first *corev1.ConfigMap) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	epoch := first.Data[epochKey]
	if r.epoch == "" || epoch == r.epoch || strings.HasSuffix(epoch, " "+r.options.Holder) {
		return false
	}
	r.enter(foreign)
	return true
}

// takeOver writes the epoch to an object that exists, and gives it with what is in it.
func (r *Record) takeOver(ctx context.Context, key kube.Key, epoch string) (*corev1.ConfigMap, error) {
	var err error
	for range beginTries {
		var object *corev1.ConfigMap
		if object, err = kube.Fetch[*corev1.ConfigMap](ctx, r.options.Client, key); apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err == nil {
			object, err = kube.PatchData(ctx, r.options.Client, object, r.taking(object, epoch))
		}
		if err == nil || !isOutrun(err) {
			return object, err
		}
	}
	return nil, err
}

// isOutrun tells that the object was changed or removed since it was read.
func isOutrun(err error) bool { return kube.IsConflict(err) || apierrors.IsNotFound(err) }

func (r *Record) create(ctx context.Context, key kube.Key, data map[string]string) (*corev1.ConfigMap, error) {
	return kube.Create(ctx, r.options.Client, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Data: data,
	})
}

// nextEpoch differs from every epoch that anybody had: by its number from the one before, and by the
// process from one that is written at the same time, of which the server takes one.
func (r *Record) nextEpoch(last string) string {
	number, _, _ := strings.Cut(last, " ")
	n, err := strconv.ParseUint(number, 10, 62)
	if err != nil {
		n = 0 // the first, or one that somebody has edited
	}
	if tenure := r.tenure(); tenure.Lease != "" {
		return fmt.Sprintf("%d %s %s", n+1, tenure, r.options.Holder)
	}
	return fmt.Sprintf("%d %s", n+1, r.options.Holder)
}

// load takes what the objects hold for the state of the record.
func (r *Record) load(epoch string, objects []*corev1.ConfigMap) []Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []Entry
	for i, object := range objects {
		s := r.shards[i]
		if object != nil {
			for key, value := range object.Data {
				uid := types.UID(key)
				if !isEntry(key) || s.has(key) || r.over[claimOf(uid)] {
					continue // what this process has put there or taken off since is newer
				}
				if own := r.entries[uid]; own != nil {
					if own.value == value {
						// It did arrive, or the process before this one has asked for the very same: then its call is open too.
						own.untold = true
						found = append(found, Entry{claimOf(uid), uid, r.forgot, isBetween(uid), own.Document})
						continue
					}
					uid = r.asideOf(uid) // begun by this process without the right to write, while that of another was there
				}
				e := &entry{Document: decode(value, object.Data), shard: i, value: value, untold: true}
				r.put(uid, e)
				found = append(found, Entry{claimOf(uid), uid, r.forgot, isBetween(uid), e.Document})
			}
		}
		s.adopt(object)
		s.proven = object != nil
	}
	r.spread()
	r.epoch = epoch
	r.over, r.forgot = map[types.UID]bool{}, false // from here on what is settled is taken off
	r.telling = true
	r.enter(recording)
	slices.SortFunc(found, func(a, b Entry) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return found
}

// enter changes the state. It is called under the lock.
func (r *Record) enter(next state) {
	if next == foreign && r.state != foreign {
		close(r.lost)
	}
	r.state = next
}

// warn tells once, until it has changed, that nothing is recorded.
func (r *Record) warn(ctx context.Context, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != unwritable {
		klog.FromContext(ctx).Error(cause, "WARNING: open attempts are not recorded, because this process may not write ConfigMaps in its namespace: if it ends while "+
			"a CreateVolume has no certain outcome and the claim is deleted before another process has taken up the work, the volume stays at the driver. "+
			"A role such as that in deploy/provisioner/rbac.yaml, bound to the account of the pod, grants the right; --attempt-record=false says that this is meant so", "namespace", r.options.Namespace)
	}
	r.enter(unwritable)
}

// AwaitBegun returns when the record was begun, or the context has ended.
func (r *Record) AwaitBegun(ctx context.Context) error {
	select {
	case <-r.begun:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
