// SPDX-License-Identifier: Apache-2.0

package groupsnapshot_test

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/csi-tandem/csi-tandem/pkg/controller/groupsnapshot"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

func class(name, driver string) *kube.GroupSnapshotClass {
	return &kube.GroupSnapshotClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Driver: driver}
}

func group(name, class string) *kube.GroupSnapshot {
	return &kube.GroupSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name}, Spec: kube.GroupSnapshotSpec{VolumeGroupSnapshotClassName: class},
	}
}

func room(h *kit.Harness) *groupsnapshot.Controller {
	return groupsnapshot.New(groupsnapshot.Deps{Client: h.API, Recorder: h.Recorder, Clock: h.Clock, DriverName: kit.DriverName})
}

// TestGroupsAreToldOf: each group of our driver once, and nothing is written but that.
func TestGroupsAreToldOf(t *testing.T) {
	h := kit.New(t)
	unnamed := class("default", kit.DriverName)
	unnamed.Annotations = map[string]string{wellknown.AnnDefaultGroupSnapshotClass: "true"}
	h.Put(class("gold", kit.DriverName), class("other", "other.example.com"), unnamed)
	taken := group("taken", "gold")
	taken.Status.ReadyToUse = true
	given := group("given", "")
	given.Spec.Source.VolumeGroupSnapshotContentName = "of-some-driver"
	h.Put(group("nightly", "gold"), group("unclassed", ""), group("elsewhere", "other"), taken, given)
	c := room(h)
	for range 3 {
		if err := c.Look(h.Ctx); err != nil {
			t.Fatal(err)
		}
	}
	events := h.Recorder.Events()
	if len(events) != 2 || !strings.Contains(events[0], "team-a/nightly is not taken") || !strings.Contains(events[1], "team-a/unclassed is not taken") {
		t.Errorf("told %q", events)
	}
	for _, verb := range h.API.Verbs() {
		if !strings.HasPrefix(verb, "list ") {
			t.Errorf("asked for %q, and groups are only looked at", verb)
		}
	}
}

// TestGroupsThatNobodyMaySee: without the right nothing is told, and the next look is as good as any.
func TestGroupsThatNobodyMaySee(t *testing.T) {
	h := kit.New(t)
	h.Put(class("gold", kit.DriverName), group("nightly", "gold"))
	for _, plural := range []string{"volumegroupsnapshotclasses", "volumegroupsnapshots"} {
		allow := h.API.Deny("list", plural)
		if err := room(h).Look(h.Ctx); !apierrors.IsForbidden(err) {
			t.Errorf("without the right to list %s: %v", plural, err)
		}
		allow()
	}
	if events := h.Recorder.Events(); len(events) != 0 {
		t.Errorf("told %q", events)
	}
	if err := room(h).Look(h.Ctx); err != nil || len(h.Recorder.Events()) != 1 {
		t.Errorf("told %q (%v), want one event", h.Recorder.Events(), err)
	}
}

// TestGroupsWithoutClasses: who is there for all drivers needs no class, and a cluster that has no groups is nothing to complain about.
func TestGroupsWithoutClasses(t *testing.T) {
	h := kit.New(t)
	h.Put(group("nightly", ""))
	absent := func(plural string) {
		h.API.Script(kit.Rule{Verb: "list", Resource: plural, Err: apierrors.NewNotFound(schema.GroupResource{Resource: plural}, "")})
	}
	absent("volumegroupsnapshotclasses")
	forAll := groupsnapshot.New(groupsnapshot.Deps{Client: h.API, Recorder: h.Recorder, Clock: h.Clock})
	if err := forAll.Look(h.Ctx); err != nil || len(h.Recorder.Events()) != 1 {
		t.Errorf("told %q (%v), want one event", h.Recorder.Events(), err)
	}
	absent("volumegroupsnapshotclasses")
	absent("volumegroupsnapshots")
	if err := room(h).Look(h.Ctx); err != nil || len(h.Recorder.Events()) != 1 {
		t.Errorf("told %q (%v), want no other event", h.Recorder.Events(), err)
	}
}

// TestGroupsAreLookedForAgain: who asks for one later is told as well, and the end of the process ends the looking.
func TestGroupsAreLookedForAgain(t *testing.T) {
	h := kit.New(t)
	h.Put(class("gold", kit.DriverName), group("first", "gold"))
	heard := listener{make(chan string, 9)}
	room := groupsnapshot.New(groupsnapshot.Deps{Client: h.API, Recorder: heard, Clock: h.Clock, DriverName: kit.DriverName})
	ctx, stop := context.WithCancel(h.Ctx)
	ended := make(chan error)
	go func() { ended <- room.Run(ctx) }()
	if name := <-heard.names; name != "first" {
		t.Errorf("told of %s", name)
	}
	h.Put(group("a-later-one", "gold"))
	h.Clock.Step(time.Minute)
	if name := <-heard.names; name != "a-later-one" {
		t.Errorf("told of %s", name)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// listener passes on whom is spoken of.
type listener struct{ names chan string }

func (l listener) Normal(obj kube.Object, _, _ string)  { l.names <- obj.GetName() }
func (l listener) Warning(obj kube.Object, _, _ string) { l.names <- obj.GetName() }
func (l listener) Shared(obj kube.Object, _, _ string)  { l.names <- obj.GetName() }
