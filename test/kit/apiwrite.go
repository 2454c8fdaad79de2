// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// lockText is what the real server says when a resource version is stale.
const lockText = "the object has been modified; please apply your changes to the latest version and try again"

func (a *API) now() string { return a.clock.Now().UTC().Format(time.RFC3339) }

func (a *API) nextVersion() string {
	a.version++
	return strconv.FormatInt(a.version, 10)
}

func (a *API) create(r kube.Resource, body raw) (raw, error) {
	obj := clone(body)
	meta := metadata(obj)
	if stringOf(meta, "resourceVersion") != "" {
		return nil, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	if !r.Namespaced {
		delete(meta, "namespace")
	} else if stringOf(meta, "namespace") == "" {
		return nil, apierrors.NewBadRequest("an empty namespace may not be set during creation")
	}
	if stringOf(meta, "name") == "" {
		prefix := stringOf(meta, "generateName")
		if prefix == "" {
			return nil, invalid(r, "", field.Required(field.NewPath("metadata", "name"), "name or generateName is required"))
		}
		meta["name"] = fmt.Sprintf("%s%05d", prefix, a.version)
	}
	key := keyOf(obj)
	at := objectKey{r.Plural, key}
	if a.objects[at] != nil {
		return nil, apierrors.NewAlreadyExists(r.GroupResource(), key.Name)
	}
	beginStatus(r, obj)
	meta["uid"] = string(a.nextUID(at))
	meta["creationTimestamp"] = a.now()
	delete(meta, "deletionTimestamp")
	delete(meta, "deletionGracePeriodSeconds")
	a.store(r, at, obj, watch.Added)
	return obj, nil
}

// beginStatus drops the status that came with a new object. Nodes keep theirs, claims and volumes begin
// as pending.
func beginStatus(r kube.Resource, obj raw) {
	switch {
	case r.Plural == "nodes" || !hasStatus(r.GroupResource()):
	case r.Plural == "persistentvolumes" || r.Plural == "persistentvolumeclaims":
		obj["status"] = raw{"phase": "Pending"}
	default:
		delete(obj, "status")
	}
}

func (a *API) nextUID(at objectKey) types.UID {
	nth := a.births[at]
	a.births[at]++
	return UIDOf(at.plural, at.key.Namespace, at.key.Name, nth)
}

// store keeps a new state and tells of it.
func (a *API) store(r kube.Resource, at objectKey, obj raw, kind watch.EventType) {
	old := a.objects[at]
	metadata(obj)["resourceVersion"] = a.nextVersion()
	a.objects[at] = obj
	if kind == watch.Deleted {
		delete(a.objects, at)
	}
	a.publish(event{version: a.version, kind: kind, resource: r, key: at.key, old: old, obj: obj})
}

func (a *API) patch(r kube.Resource, key kube.Key, body kube.PatchBody) (raw, error) {
	at := objectKey{r.Plural, key}
	current := a.objects[at]
	if current == nil {
		return nil, apierrors.NewNotFound(r.GroupResource(), key.Name)
	}
	if body.Type != types.MergePatchType {
		return nil, apierrors.NewGenericServerResponse(415, "patch", r.GroupResource(), key.Name, "the fake takes merge patches only", 0, false)
	}
	change := raw{}
	if err := json.Unmarshal(body.Data, &change); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if body.Subresource != "" && (body.Subresource != "status" || !hasStatus(r.GroupResource())) {
		return nil, apierrors.NewNotFound(r.GroupResource(), key.Name)
	}
	next := merge(clone(current), clone(change))
	if err := checkIdentity(r, key, current, next); err != nil {
		return nil, err
	}
	next = keepOtherHalf(r, body.Subresource, current, next)
	if err := checkFinalizers(r, key, current, next); err != nil {
		return nil, err
	}
	if reflect.DeepEqual(current, next) {
		return current, nil // a patch that changes nothing makes no new version
	}
	if isTerminating(next) && len(finalizers(next)) == 0 {
		// The answer carries the version before the deletion, as the real server's does.
		answer := clone(next)
		a.store(r, at, next, watch.Deleted)
		return answer, nil
	}
	a.store(r, at, next, watch.Modified)
	return next, nil
}

// checkIdentity refuses a stale lock first and another object's UID second, in the real server's order
// and with its answers: 409 and 422.
func checkIdentity(r kube.Resource, key kube.Key, current, next raw) error {
	before, after := metadata(current), metadata(next)
	if stringOf(after, "resourceVersion") != stringOf(before, "resourceVersion") {
		return apierrors.NewConflict(r.GroupResource(), key.Name, errors.New(lockText))
	}
	if uid := stringOf(after, "uid"); uid != stringOf(before, "uid") {
		return invalid(r, key.Name, field.Invalid(field.NewPath("metadata", "uid"), uid, "field is immutable"))
	}
	return nil
}

// keepOtherHalf drops what the endpoint cannot write. Custom resources take metadata through the main
// endpoint only; built-in kinds take it through both. What the server owns nobody writes.
func keepOtherHalf(r kube.Resource, subresource string, current, next raw) raw {
	owned := []string{"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "name", "namespace", "generateName", "selfLink"}
	for _, name := range owned {
		restore(metadata(next), metadata(current), name)
	}
	switch {
	case subresource == "status" && r.Group == wellknown.SnapshotGroup:
		kept := clone(current)
		restore(kept, next, "status")
		return kept
	case subresource == "status":
		restore(next, current, "spec")
	case hasStatus(r.GroupResource()):
		restore(next, current, "status")
	}
	return next
}

func restore(into, from raw, name string) {
	if value, ok := from[name]; ok {
		into[name] = value
		return
	}
	delete(into, name)
}

func isTerminating(r raw) bool { return stringOf(metadata(r), "deletionTimestamp") != "" }

func checkFinalizers(r kube.Resource, key kube.Key, current, next raw) error {
	if !isTerminating(current) {
		return nil
	}
	var added []string
	for _, f := range finalizers(next) {
		if !slices.Contains(finalizers(current), f) {
			added = append(added, f)
		}
	}
	if len(added) == 0 {
		return nil
	}
	return invalid(r, key.Name, field.Forbidden(field.NewPath("metadata", "finalizers"),
		fmt.Sprintf("no new finalizers can be added if the object is being deleted, found new finalizers %#v", added)))
}

func invalid(r kube.Resource, name string, errs ...*field.Error) error {
	return apierrors.NewInvalid(r.GroupKind(), name, errs)
}

func (a *API) delete(r kube.Resource, key kube.Key, only *metav1.Preconditions) error {
	at := objectKey{r.Plural, key}
	current := a.objects[at]
	if current == nil {
		return apierrors.NewNotFound(r.GroupResource(), key.Name)
	}
	if err := checkPreconditions(r, key, metadata(current), only); err != nil {
		return err
	}
	next := clone(current)
	if len(finalizers(current)) == 0 {
		a.store(r, at, next, watch.Deleted)
		return nil
	}
	if isTerminating(current) {
		return nil
	}
	metadata(next)["deletionTimestamp"] = a.now()
	metadata(next)["deletionGracePeriodSeconds"] = int64(0)
	a.store(r, at, next, watch.Modified)
	return nil
}

func checkPreconditions(r kube.Resource, key kube.Key, meta raw, only *metav1.Preconditions) error {
	if only == nil {
		return nil
	}
	differ := func(what, want, have string) error {
		return apierrors.NewConflict(r.GroupResource(), key.Name,
			fmt.Errorf("Precondition failed: %s in precondition: %s, %s in object meta: %s", what, want, what, have)) //nolint:revive // the real server's text
	}
	if have := stringOf(meta, "uid"); only.UID != nil && string(*only.UID) != have {
		return differ("UID", string(*only.UID), have)
	}
	if have := stringOf(meta, "resourceVersion"); only.ResourceVersion != nil && *only.ResourceVersion != have {
		return differ("ResourceVersion", *only.ResourceVersion, have)
	}
	return nil
}
