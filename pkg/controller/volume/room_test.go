// SPDX-License-Identifier: Apache-2.0

package volume_test

import (
	"errors"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/volume"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

var key = kube.Key{Name: "v"}

// released is a volume whose claim is gone, as the provisioner has written it.
func released(mods ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	all := append([]func(*corev1.PersistentVolume){kit.ClaimedBy(kit.Claim("gone")), kit.Released, func(v *corev1.PersistentVolume) {
		kube.AddFinalizer(v, wellknown.FinalizerVolume)
		kube.SetAnnotation(v, wellknown.AnnDeletionSecretName, "")
		kube.SetAnnotation(v, wellknown.AnnDeletionSecretNamespace, "")
	}}, mods...)
	return kit.Volume("v", all...)
}

// world holds a volume, at the driver too.
func world(t *testing.T, v *corev1.PersistentVolume) *kit.Harness {
	h := kit.New(t)
	made, err := h.Driver.CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: v.Name, VolumeCapabilities: []*csi.VolumeCapability{{}}})
	if err != nil {
		t.Fatal(err)
	}
	v.Spec.CSI.VolumeHandle = made.GetVolumeId()
	h.Put(v)
	return h
}

func start(h *kit.Harness) { startAs(h, kit.DriverName) }

func startAs(h *kit.Harness, driver string) *volume.Controller {
	c := volume.New(volume.Deps{
		Client: h.API, Driver: h.Driver, DriverName: driver, Capabilities: h.Driver.Capabilities,
		Recorder: h.Recorder, Clock: h.Clock,
		Volumes: h.Stores.Volumes, Classes: h.Stores.StorageClasses, Attachments: h.Stores.Attachments, Claims: h.Stores.Claims,
		RetryStart: h.RetryStart, RetryMax: h.RetryMax,
	})
	h.Add(kit.Room{Name: "volume", Reconcile: c.Reconcile, Keys: kit.Feeds(kit.On(c.KeysOfVolume), kit.On(c.KeysOfAttachment))})
	return c
}

const (
	remove    = "driver DeleteVolume handle-of-v → OK"
	unprotect = `patch persistentvolumes v {"metadata":{"finalizers":null}}`
	protect   = `patch persistentvolumes v {"metadata":{"finalizers":["external-provisioner.volume.kubernetes.io/finalizer"]}}`
	drop      = "delete persistentvolumes v"
	failed    = "event v: Warning VolumeFailedDelete "
)

func serverError() error { return apierrors.NewInternalError(errors.New("etcd")) }

func TestVolumes(t *testing.T) {
	bound := func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeBound }
	retain := func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}
	dying := func(v *corev1.PersistentVolume) { kit.Deleted(v) }
	static := func(v *corev1.PersistentVolume) { v.Annotations, v.Finalizers = nil, nil }
	foreign := func(v *corev1.PersistentVolume) { kube.AddFinalizer(v, "external-attacher/x") }
	keepForeign := `patch persistentvolumes v {"metadata":{"finalizers":["external-attacher/x"]}}`
	for _, c := range []struct {
		name  string
		v     *corev1.PersistentVolume
		with  func(*kit.Harness)
		want  []string
		stays bool
	}{
		{name: "T67 removed, released, deleted", v: released(), want: []string{remove, unprotect, drop}},
		{name: "T67 W5 finalizers of others stay", v: released(foreign), want: []string{remove, keepForeign, drop}, stays: true},
		{name: "T69 deleted before its claim", v: released(dying), want: []string{remove, unprotect}},
		{name: "T68 bound", v: released(bound), stays: true},
		{name: "T58 B057 kept", v: released(retain), want: []string{unprotect}, stays: true},
		{name: "B057 kept, and deleted by hand", v: released(retain, dying), want: []string{unprotect}},
		{name: "T71 static and bound", v: released(static, bound), want: []string{protect}, stays: true},
		{name: "T71 static and released", v: released(static), want: []string{remove, drop}},
		{
			name: "T75 the driver fails", v: released(),
			with: func(h *kit.Harness) { h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.Internal, Text: "x"}) },
			want: []string{"driver DeleteVolume handle-of-v → Internal", failed + "rpc error: code = Internal desc = x", remove, unprotect, drop},
		},
		{
			// The CSI spec has OK for a volume that is not there. NotFound ends it as well, but may be about something else that the driver
			// lacks, and then the volume is left; nobody would know of it.
			name: "the driver does not know it any more", v: released(),
			with: func(h *kit.Harness) {
				h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.NotFound, Text: "storage system ssd-1 not found"})
			},
			want: []string{
				"driver DeleteVolume handle-of-v → NotFound",
				failed + `the driver does not know volume "handle-of-v", and has deleted nothing: rpc error: code = NotFound desc = storage system ssd-1 not found; look whether its storage still has that volume, and delete it there: nobody asks for it again`,
				unprotect, drop,
			},
		},
		{
			name: "B015 the finalizer loses races: the driver is asked once", v: released(),
			with: func(h *kit.Harness) { h.API.Conflict("persistentvolumes", 3) },
			want: []string{remove, "patch persistentvolumes v → Conflict", "patch persistentvolumes v → Conflict", "patch persistentvolumes v → Conflict", unprotect, drop},
		},
		{
			name: "B015 T76 the delete fails: the driver is asked once", v: released(),
			with: func(h *kit.Harness) { h.API.Fail("delete", "persistentvolumes", serverError(), 2) },
			want: []string{remove, unprotect, drop + " → InternalError", drop + " → InternalError", drop},
		},
		{
			name: "the live read fails: nothing is deleted before it works", v: released(),
			with: func(h *kit.Harness) { h.API.Fail("get", "persistentvolumes", serverError(), 2) },
			want: []string{remove, unprotect, drop},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := world(t, c.v)
			if c.with != nil {
				c.with(h)
			}
			start(h)
			h.Settle()
			if d := cmp.Diff(c.want, h.Log.Lines()); d != "" {
				t.Errorf("%s\n%s", d, h.Trace())
			}
			if _, ok := kit.Read[*corev1.PersistentVolume](h.API, key); ok != c.stays {
				t.Errorf("there: %v, want %v", ok, c.stays)
			}
		})
	}
}

func TestForbiddenFinalizer(t *testing.T) {
	h := world(t, released())
	release := h.API.Deny("patch", "persistentvolumes")
	start(h)
	h.Horizon = 10 * time.Second
	h.Settle()
	events := h.Recorder.Events()
	if len(events) != 1 || len(h.Driver.Calls("DeleteVolume")) != 1 {
		t.Errorf("B015: %d calls, events %q", len(h.Driver.Calls("DeleteVolume")), events)
	}
	release()
	h.Horizon = time.Hour
	h.Settle()
	if left := kit.All[*corev1.PersistentVolume](h.API); len(left) != 0 || len(h.Driver.Calls("DeleteVolume")) != 1 {
		t.Error("B015: no recovery once the right came", left)
	}
}

func TestTakenBack(t *testing.T) {
	for name, back := range map[string]func(*corev1.PersistentVolume){
		"bound again": func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeBound },
		"to be kept": func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		},
	} {
		t.Run("A6 the cache is old: "+name, func(t *testing.T) {
			h := world(t, released())
			h.Stores.Hold()
			kit.Edit(h.API, key, back)
			start(h)
			h.Enqueue("volume", keyOf("v"))
			h.Settle()
			if calls := h.Driver.Calls("DeleteVolume"); len(calls) != 0 {
				t.Error(calls)
			}
		})
	}
	t.Run("the cache is old: it is gone", func(t *testing.T) {
		h := world(t, released())
		h.Stores.Hold()
		kit.Edit(h.API, key, func(v *corev1.PersistentVolume) { v.Finalizers = nil })
		kit.Remove[*corev1.PersistentVolume](h.API, key)
		start(h)
		h.Enqueue("volume", keyOf("v"))
		h.Settle()
		if lines := h.Log.Lines(); len(lines) != 0 {
			t.Error(lines)
		}
	})
}

func TestSlowCachesDoNotRepeatWrites(t *testing.T) {
	v := released(func(v *corev1.PersistentVolume) { v.Finalizers, v.Status.Phase = nil, corev1.VolumeBound })
	h := world(t, v)
	h.Stores.Hold()
	start(h)
	for range 3 {
		h.Enqueue("volume", keyOf("v"))
		h.Settle()
	}
	if d := cmp.Diff([]string{protect}, h.Log.Lines()); d != "" {
		t.Error(d)
	}
}

func TestAttached(t *testing.T) {
	h := world(t, released())
	h.Put(kit.Attachment("a", "v", "n1"), kit.Attachment("b", "other", "n1"))
	start(h)
	h.Horizon = 10 * time.Second
	h.Settle()
	wait := "event v: Normal VolumeFailedDelete persistentvolume v is still attached to node n1"
	if d := cmp.Diff([]string{wait}, h.Log.Lines()); d != "" {
		t.Error("T72", d)
	}
	came := h.Clock.Now()
	kit.Remove[*storagev1.VolumeAttachment](h.API, kube.Key{Name: "a"})
	h.Settle()
	if d := cmp.Diff([]string{wait, remove, unprotect, drop}, h.Log.Lines()); d != "" || !h.Clock.Now().Equal(came) {
		t.Error("T72: the detachment did not wake it", d)
	}
}

func TestDeletionSecrets(t *testing.T) {
	secret := func(v *corev1.PersistentVolume) {
		kube.SetAnnotation(v, wellknown.AnnDeletionSecretName, "s")
		kube.SetAnnotation(v, wellknown.AnnDeletionSecretNamespace, "default")
	}
	data := map[string]string{"key": "S3CR3T-CANARY"}
	missing := failed + `error getting secret s in namespace default: secrets "s" not found; annotations volume.kubernetes.io/provisioner-deletion-secret-name and ` +
		`volume.kubernetes.io/provisioner-deletion-secret-namespace of the PersistentVolume name it: create that secret, and the deletion goes on by itself, ` +
		`within --retry-interval-max (5m if not set), or at once with kubectl annotate pv v --overwrite csi-tandem.io/retry=$(date +%s); ` +
		`if it stays missing for 2 minutes, one try is made without it`
	t.Run("T73 sent", func(t *testing.T) {
		h := world(t, released(secret))
		h.Driver.Secrets = data
		h.Put(kit.Secret("s", data))
		start(h)
		h.Settle()
		if d := cmp.Diff([]string{remove, unprotect, drop}, h.Log.Lines()); d != "" {
			t.Error(d)
		}
	})
	t.Run("B051 missing for a minute: no call without", func(t *testing.T) {
		h := world(t, released(secret))
		h.Driver.Secrets = data
		start(h)
		h.Horizon = time.Minute
		h.Settle()
		if d := cmp.Diff([]string{missing}, h.Log.Lines()); d != "" {
			t.Error(d)
		}
		h.Put(kit.Secret("s", data))
		h.Horizon = time.Hour
		h.Settle()
		if d := cmp.Diff([]string{missing, remove, unprotect, drop}, h.Log.Lines()); d != "" {
			t.Error(d)
		}
	})
	t.Run("what the event advises hastens it", func(t *testing.T) {
		h := world(t, released(secret))
		h.Driver.Secrets = data
		start(h)
		h.Horizon = 100 * time.Second
		h.Settle()
		h.Put(kit.Secret("s", data))
		h.Horizon = time.Second
		h.Settle()
		if d := cmp.Diff([]string{missing}, h.Log.Lines()); d != "" {
			t.Fatal("the secret was noticed by itself: then the advice is wrong", d)
		}
		kit.Edit(h.API, kube.Key{Name: "v"}, func(v *corev1.PersistentVolume) { kube.SetAnnotation(v, "csi-tandem.io/retry", "1") })
		h.Settle()
		if d := cmp.Diff([]string{missing, remove, unprotect, drop}, h.Log.Lines()); d != "" {
			t.Errorf("%s\n%s", d, h.Trace())
		}
	})
	t.Run("missing for good: one try without after two minutes", func(t *testing.T) {
		h := world(t, released(secret))
		h.Driver.Next("DeleteVolume", kit.Reply{Code: codes.Unauthenticated, Text: "who"})
		start(h)
		h.Settle()
		want := []string{missing, "driver DeleteVolume handle-of-v → Unauthenticated", failed + "rpc error: code = Unauthenticated desc = who", missing, remove, unprotect, drop}
		if d := cmp.Diff(want, h.Log.Lines()); d != "" {
			t.Errorf("%s\n%s", d, h.Trace())
		}
		if took := h.Clock.Since(kit.Start); took < 4*time.Minute {
			t.Errorf("two tries without the secret after %v", took)
		}
	})
	t.Run("an error is not a missing secret", func(t *testing.T) {
		h := world(t, released(secret))
		h.API.Deny("get", "secrets")
		start(h)
		h.Settle()
		if calls := h.Driver.Calls("DeleteVolume"); len(calls) != 0 {
			t.Error(calls)
		}
	})
}

func TestKeysOfVolume(t *testing.T) {
	h := kit.New(t)
	c := volume.New(volume.Deps{DriverName: kit.DriverName, Capabilities: h.Driver.Capabilities, Clock: h.Clock, Volumes: h.Stores.Volumes})
	for name, row := range map[string]struct {
		v    *corev1.PersistentVolume
		want int
	}{
		"P-4 settled":   {released(func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeBound }), 0},
		"to be deleted": {released(), 1},
		"terminating":   {released(func(v *corev1.PersistentVolume) { kit.Deleted(v) }), 1},
		"of another driver": {released(func(v *corev1.PersistentVolume) {
			v.Annotations[wellknown.AnnProvisionedBy], v.Spec.CSI.Driver = "other", "other"
		}), 0},
	} {
		if got := c.KeysOfVolume(kube.Change[*corev1.PersistentVolume]{New: row.v}); len(got) != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := c.KeysOfVolume(kube.Change[*corev1.PersistentVolume]{Old: released(), Deleted: true}); got != nil {
		t.Error(got)
	}
	attached := kube.Change[*storagev1.VolumeAttachment]{New: &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}
	if got := c.KeysOfAttachment(attached); got != nil {
		t.Error(got)
	}
}

func keyOf(name string) reconcile.Key { return reconcile.Key{Name: name} }
