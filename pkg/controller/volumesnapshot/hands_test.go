// SPDX-License-Identifier: Apache-2.0

package volumesnapshot

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

var etcd = apierrors.NewInternalError(errors.New("etcd"))

func warnings(h *kit.Harness, reason string) int {
	n := 0
	for _, event := range h.Recorder.Events() {
		if strings.HasPrefix(event, "Warning "+reason+" ") {
			n++
		}
	}
	return n
}

func TestFailingWritesAreToldAndTriedAgain(t *testing.T) {
	h := kit.New(t)
	disk(h)
	both(h)
	h.API.Fail("patch", "volumesnapshots", etcd, 1)
	h.API.Fail("patch", "persistentvolumeclaims", etcd, 1)
	h.API.Fail("get", "persistentvolumes", apierrors.NewServerTimeout(schema.GroupResource{}, "get", 1), 1)
	userTakes("snap")(h)
	h.Settle()
	wantReady("snap")(t, h)
	h.API.Fail("delete", "volumesnapshotcontents", etcd, 2)
	userDeletes("snap")(h)
	h.Settle()
	wantNothing(t, h)
	for reason, want := range map[string]int{wellknown.ReasonSnapshotFinalizerError: 1, wellknown.ReasonErrorPVCFinalizer: 1, wellknown.ReasonSnapshotContentDeleteError: 1} {
		if got := warnings(h, reason); got != want {
			t.Errorf("S75 %s told %d times, want %d: %v", reason, got, want, h.Recorder.Events())
		}
	}
}

func TestBindingFailsOnce(t *testing.T) {
	h := kit.New(t)
	disk(h)
	h.Put(kit.NamedContent("old"))
	h.Driver.PutSnapshot("old", kit.VolumeHandle("pv-data"), 1<<30)
	both(h)
	h.Settle()
	h.API.Fail("patch", "volumesnapshotcontents", etcd, 1)
	h.Put(kit.Snapshot("data-snapshot", "", kit.FromContent("old")))
	h.Settle()
	wantReady("data-snapshot")(t, h)
	if warnings(h, wellknown.ReasonSnapshotBindFailed) != 1 {
		t.Errorf("S49 %v", h.Recorder.Events())
	}
}

func TestWhatOthersTakeAwayComesBack(t *testing.T) {
	for name, edit := range map[string]func(*snapv1.VolumeSnapshot){
		"S27 status":     func(s *snapv1.VolumeSnapshot) { s.Status = nil },
		"S27 bound name": func(s *snapv1.VolumeSnapshot) { s.Status.BoundVolumeSnapshotContentName = nil },
		"readiness":      func(s *snapv1.VolumeSnapshot) { s.Status.ReadyToUse = kit.Ptr(false) },
		"creation time":  func(s *snapv1.VolumeSnapshot) { s.Status.CreationTime = nil },
		"size":           func(s *snapv1.VolumeSnapshot) { s.Status.RestoreSize = nil },
		"finalizers":     func(s *snapv1.VolumeSnapshot) { s.Finalizers = []string{"example.com/backup"} },
	} {
		t.Run(name, func(t *testing.T) {
			h := kit.New(t)
			disk(h)
			both(h)
			userTakes("snap", func(s *snapv1.VolumeSnapshot) {
				s.Finalizers, s.Labels = []string{"example.com/backup"}, map[string]string{"team": "blue"}
			})(h)
			h.Settle()
			kit.Edit(h.API, key("snap"), edit)
			h.Settle()
			wantReady("snap")(t, h)
			s := snap(t, h, "snap")
			if len(s.Finalizers) != 3 || s.Labels["team"] != "blue" || s.Status.RestoreSize == nil || s.Status.BoundVolumeSnapshotContentName == nil {
				t.Errorf("S40 %v %v %+v", s.Finalizers, s.Labels, s.Status)
			}
		})
	}
}

func TestObjectsThatVanishUnderTheWork(t *testing.T) {
	for name, rule := range map[string]func(h *kit.Harness) kit.Rule{
		"snapshot before its finalizers": func(h *kit.Harness) kit.Rule {
			return kit.Rule{Verb: "patch", Resource: "volumesnapshots", Meanwhile: func() { userDeletes("snap")(h) }}
		},
		"claim": func(h *kit.Harness) kit.Rule {
			return kit.Rule{Verb: "patch", Resource: "persistentvolumeclaims", Meanwhile: func() { kit.Remove[*corev1.PersistentVolumeClaim](h.API, key("data")) }}
		},
		"S77 snapshot before its content": func(h *kit.Harness) kit.Rule {
			return kit.Rule{Verb: "create", Resource: "volumesnapshotcontents", Meanwhile: func() { userDeletes("snap")(h) }}
		},
		"content before its deletion": func(h *kit.Harness) kit.Rule {
			return kit.Rule{Verb: "delete", Resource: "volumesnapshotcontents", Meanwhile: func() {
				for _, c := range kit.All[*kube.Content](h.API) {
					kit.Edit(h.API, kube.KeyOf(c), func(c *kube.Content) { c.Finalizers = nil; kit.Deleted(c) })
				}
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := kit.New(t)
			disk(h)
			_, room := binder(h, Own)
			h.Add(room)
			scripted := rule(h)
			scripted.Times = 1
			h.API.Script(scripted)
			h.Horizon = 3 * time.Second
			userTakes("snap")(h)
			h.Settle()
			userDeletes("snap")(h)
			h.Settle()
			for _, c := range kit.All[*kube.Content](h.API) {
				if c.DeletionTimestamp == nil {
					t.Errorf("content left: %s", c.Name)
				}
				kit.Edit(h.API, kube.KeyOf(c), func(c *kube.Content) { c.Finalizers = nil })
			}
			h.Settle()
			wantNothing(t, h)
		})
	}
}

func TestRunsOnARealQueue(t *testing.T) {
	h := kit.New(t)
	disk(h)
	i := Informers{
		Snapshots: kube.NewInformer(h.API, kube.InformerOptions[*snapv1.VolumeSnapshot]{Indexes: kube.SnapshotIndexes()}),
		Contents:  kube.NewInformer(h.API, kube.InformerOptions[*kube.Content]{Indexes: kube.ContentIndexes()}),
		Classes:   kube.NewInformer(h.API, kube.InformerOptions[*snapv1.VolumeSnapshotClass]{}),
		Claims:    kube.NewInformer(h.API, kube.InformerOptions[*corev1.PersistentVolumeClaim]{Indexes: kube.ClaimIndexes()}),
	}
	c, _ := binder(h, Auto)
	c.Snapshots, c.Contents, c.Classes, c.Claims = i.Snapshots.Store, i.Contents.Store, i.Classes.Store, i.Claims.Store
	c.Watch(i)
	touched := make(chan struct{})
	h.API.Script(kit.Rule{Verb: "patch", Resource: "volumesnapshots", Times: 1, Meanwhile: func() { close(touched) }})

	// The lease of another binder is old by the time that somebody looks again.
	h.Put(lease("rival", h.Clock.Now()))
	c.Stance.Look(t.Context())
	userTakes("snap")(h)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go i.Snapshots.Run(ctx)
	go i.Contents.Run(ctx)
	go i.Classes.Run(ctx)
	go i.Claims.Run(ctx)
	h.Clock.Step(time.Minute)
	go func() { ended <- c.Run(ctx) }()
	go func() { ended <- c.Stance.Run(ctx) }()
	<-touched
	stop()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
