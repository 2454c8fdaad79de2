// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/controller/source"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

const (
	provisioner = "provisioner"
	kindVolume  = "PersistentVolume"
	kindClaim   = wellknown.KindPersistentVolumeClaim
)

// Provisioner is what the rooms of the provisioner are told by flags.
type Provisioner struct {
	Claim  claim.Options
	Source source.Options
}

// claimLook is what was read about one claim.
type claimLook struct {
	*look
	rooms   Provisioner
	claim   *corev1.PersistentVolumeClaim
	class   *storagev1.StorageClass
	claims  *kube.Store[*corev1.PersistentVolumeClaim]
	volumes *kube.Store[*corev1.PersistentVolume]
	classes *kube.Store[*storagev1.StorageClass]
	// volume is the one that the claim names.
	volume *corev1.PersistentVolume
	// classErr is why the class is not known although it may exist.
	classErr error
	// told are the events of the claim.
	told []*corev1.Event
	// users are the pods that use the claim, once hasUsers says that they could be read.
	users    []*kube.Pod
	hasUsers bool
}

// Claim explains what the provisioner would do about a claim. The error means that there is nothing to
// explain.
func Claim(ctx context.Context, s Setting, rooms Provisioner, namespace, name string) (*Report, error) {
	key := kube.Key{Namespace: namespace, Name: name}
	l := newClaimLook(s, rooms)
	found, err := fill(ctx, l.look, l.claims, key)
	if err != nil {
		return nil, fmt.Errorf("reading claim %s: %w", kube.IndexValue(key), l.missing(ctx, kindClaim, key, err))
	}
	l.claim = found
	l.readAround(ctx)
	l.describe()
	l.nameDriver(
		Fact{"annotation " + wellknown.AnnStorageProvisioner + " of the claim", annotation(l.claim, wellknown.AnnStorageProvisioner)},
		Fact{"annotation " + wellknown.AnnBetaStorageProvisioner + " of the claim", annotation(l.claim, wellknown.AnnBetaStorageProvisioner)},
		Fact{"the PersistentVolume", driverOf(l.volume)}, Fact{"the StorageClass", provisionerOf(l.class)},
	)
	l.showSidecars(ctx, wellknown.SanitizeLease(l.Driver.Name), provisioner)
	l.told = l.tell(ctx, l.claim, kindClaim)
	l.noteNamespace(ctx, namespace)
	l.hear(l.lastTold())
	l.readUsers(ctx)
	l.askClaim(ctx)
	l.noteUnled()
	l.showRoom(ctx)
	if name := l.claim.Spec.VolumeName; name != "" {
		l.explainVolume(ctx, name)
	}
	l.showUsers(ctx)
	l.askSource(ctx)
	l.hold(l.claim, kindClaim)
	l.nameSnapshots(ctx)
	if l.volume != nil {
		l.hold(l.volume, kindVolume)
	}
	return l.report, nil
}

func newClaimLook(s Setting, rooms Provisioner) *claimLook {
	return &claimLook{
		look: newLook(s), rooms: rooms, claims: kube.NewStore(kube.ClaimIndexes()),
		volumes: kube.NewStore(kube.VolumeIndexes()), classes: kube.NewStore[*storagev1.StorageClass](nil),
	}
}

// readAround reads what the room of claims has in its caches.
func (l *claimLook) readAround(ctx context.Context) {
	if name := provision.ClassName(l.claim); name != "" {
		var err error
		failed := l.client.apart(func() { l.class, err = fill(ctx, l.look, l.classes, kube.Key{Name: name}) })
		if l.claim.Spec.VolumeName == "" {
			l.client.remember(failed) // of a claim that has its volume nothing depends on the class
		}
		if err != nil {
			l.class = nil
			if !apierrors.IsNotFound(err) {
				l.classErr = err
			}
		}
	}
	ref := &corev1.ObjectReference{Namespace: l.claim.Namespace, Name: l.claim.Name, UID: l.claim.UID}
	for _, name := range provision.VolumeNames(l.rooms.Claim.Options, ref) {
		_, _ = fill(ctx, l.look, l.volumes, kube.Key{Name: name}) // the reader remembers what was refused
	}
	if name := l.claim.Spec.VolumeName; name != "" {
		if volume, err := fill(ctx, l.look, l.volumes, kube.Key{Name: name}); err == nil {
			l.volume = volume
		}
	}
	if from, _ := provision.SourceOf(l.claim); from != nil && from.Kind == kindClaim {
		_, _ = fill(ctx, l.look, l.claims, kube.Key{Namespace: from.Namespace, Name: from.Name})
	}
}

// isPointless tells whether there is nothing to ask the room of claims, and then says so.
func (l *claimLook) isPointless(ctx context.Context, m Machine) bool {
	switch {
	case l.claim.Spec.VolumeName == "" && l.claim.DeletionTimestamp == nil && asked(l.claim) == "":
		found := l.hindrances(ctx, nil)
		l.unasked(m, "Does nothing for now: Kubernetes has not given the claim to any driver; the annotation "+wellknown.AnnStorageProvisioner+" would say so.",
			adviseAgainst(found, adviseUnclaimed(l.claim, l.class, l.users))...)
		l.hinder(nil, found)
		return true
	case l.class == nil && l.classErr != nil && l.claim.Spec.VolumeName == "":
		l.unasked(m, "Not known: what is decided depends on the StorageClass, which could not be read.",
			"ask somebody who may read StorageClasses to run this")
		return true
	}
	return false
}

// askClaim asks the room of claims.
func (l *claimLook) askClaim(ctx context.Context) {
	m := Machine{Program: provisioner, Object: Object{Kind: kindClaim, Namespace: l.claim.Namespace, Name: l.claim.Name}}
	if l.isPointless(ctx, m) {
		return
	}
	options := l.rooms.Claim
	deps := claim.Deps{
		Client: l.client, DriverName: l.Driver.Name, Capabilities: l.Driver.Capabilities, Clock: l.Clock,
		Claims: l.claims, Volumes: l.volumes, Classes: l.classes, RetryStart: l.RetryStart, RetryMax: l.RetryMax,
	}
	if !l.askLocal(ctx, &m, &options, &deps) {
		return
	}
	if l.claim.Spec.VolumeName == "" && l.class != nil {
		l.readPlaces(ctx, &options, &deps)
	}
	if from, _ := provision.SourceOf(l.claim); options.CrossNamespace && from != nil && from.Namespace != l.claim.Namespace {
		deps.Grants = listGrants(ctx, l.look, from.Namespace)
	}
	key := reconcile.Key{Namespace: l.claim.Namespace, Name: l.claim.Name, UID: l.claim.UID}
	in, steps, err := claim.New(options, deps).Look(ctx, key)
	if err != nil {
		m.Doubts = append(m.Doubts, err.Error())
	}
	last := len(steps) - 1
	steps[last] = l.withSecret(ctx, in, steps[last])
	found := l.hindrances(ctx, steps[last])
	l.add(m, anySteps(steps), adviseAgainst(found, adviseClaim(in, steps[last], l.users)))
	l.hinder(steps[last], found)
	if l.claim.Spec.VolumeName == "" && !isIgnored(steps) {
		l.note("What the running sidecar remembers is not visible here: a call for this claim may be open in it, which it repeats before anything else, or the driver may have refused the claim a short while ago.")
	}
}

func isIgnored(steps []provision.ClaimStep) bool {
	_, ignored := steps[len(steps)-1].(provision.Ignore)
	return ignored
}

// readPlaces reads nodes and what the driver has registered on them, as far as places matter. Where they
// cannot be read the request is told without places, since a guess would blame the nodes.
func (l *claimLook) readPlaces(ctx context.Context, options *claim.Options, deps *claim.Deps) {
	if !options.Topology || l.Driver.Asked && !l.Driver.Capabilities.HasTopology() {
		return
	}
	index, keyed := topology.NewIndex(), l.Driver.Asked
	err := list(ctx, l.look, "", metav1.ListOptions{}, func(node *storagev1.CSINode) {
		kube.FeedCSINode(index, l.Driver.Name, node)
		keyed = keyed || slices.ContainsFunc(node.Spec.Drivers, func(d storagev1.CSINodeDriver) bool {
			return d.Name == l.Driver.Name && len(d.TopologyKeys) > 0
		})
	})
	if err == nil && !keyed && !l.toldOfPlaces() {
		return // nothing shows a sign that this driver has places
	}
	if err == nil {
		err = list(ctx, l.look, "", metav1.ListOptions{}, func(node *corev1.Node) { index.SetNode(node.Name, node.Labels) })
	}
	if err != nil {
		options.Topology = false
		return
	}
	if !l.Driver.Asked {
		deps.Capabilities = capability.Of([]capability.Plugin{
			csi.PluginCapability_Service_CONTROLLER_SERVICE, csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS,
		}, everyCall()...)
	}
	deps.Topology = index
}

// askSource asks the room of sources about a claim that clones are made from.
func (l *claimLook) askSource(ctx context.Context) {
	if !kube.HasFinalizer(l.claim, wellknown.FinalizerCloneSource) {
		return
	}
	m := Machine{Program: provisioner, Object: Object{Kind: kindClaim, Namespace: l.claim.Namespace, Name: l.claim.Name,
		State: []Fact{{"as", "the source of clones"}}}}
	_ = fillAll(ctx, l.look, l.claims, l.claim.Namespace) // the reader remembers what was refused
	room := source.New(l.rooms.Source, source.Deps{
		Client: l.client, DriverName: l.Driver.Name, Clock: l.Clock, Claims: l.claims, IsInUse: func(provision.Source) bool { return false },
	})
	step, err := room.LookClaim(ctx, reconcile.Key{Namespace: l.claim.Namespace, Name: l.claim.Name})
	if err != nil {
		m.Doubts = append(m.Doubts, err.Error())
	}
	l.add(m, []any{step}, nil)
	l.note("Clones that the running sidecar is making for claims that are gone by now are not visible here; they hold the finalizer too.")
}

// grants are the ReferenceGrants of one namespace, read once.
type grants struct {
	*kube.Store[*kube.ReferenceGrant]
	err error
}

func listGrants(ctx context.Context, l *look, namespace string) grants {
	g := grants{Store: kube.NewStore(kube.GrantIndexes())}
	g.err = fillAll(ctx, l, g.Store, namespace)
	return g
}

// HasSynced tells that they could be read.
func (g grants) HasSynced() bool { return g.err == nil }

// Failure is why they could not.
func (g grants) Failure() error { return g.err }

func annotation(obj metav1.Object, key string) string { return obj.GetAnnotations()[key] }

func driverOf(volume *corev1.PersistentVolume) string {
	if volume == nil || volume.Spec.CSI == nil {
		return ""
	}
	return volume.Spec.CSI.Driver
}

func provisionerOf(class *storagev1.StorageClass) string {
	if class == nil {
		return ""
	}
	return class.Provisioner
}
