// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

func code(c codes.Code) error { return fault.New(fault.CreateSnapshot, status.Error(c, "no")) }

func TestEveryCodeOfCreate(t *testing.T) {
	open := map[codes.Code]bool{codes.Canceled: true, codes.DeadlineExceeded: true, codes.Unavailable: true, codes.Aborted: true,
		codes.ResourceExhausted: true, codes.Internal: true, codes.Unknown: true}
	proof := map[codes.Code]bool{codes.PermissionDenied: false, codes.Unauthenticated: false, codes.AlreadyExists: false}
	for c := codes.Canceled; c <= codes.Unauthenticated; c++ {
		wantFirst, wantLater := Settled, Settled
		if open[c] {
			wantFirst, wantLater = Open, Open
		}
		if _, refused := proof[c]; refused {
			wantLater = Open
		}
		if got := AfterCreate(con(unmarked), Answer{}, code(c)).Attempt.Tried; got != wantFirst {
			t.Errorf("S56 S57 %v, first call: %v, want %v", c, got, wantFirst)
		}
		if got := AfterCreate(con(tried(Open)), Answer{}, code(c)).Attempt.Tried; got != wantLater {
			t.Errorf("%v after an open call: %v, want %v", c, got, wantLater)
		}
		if got := AfterCreate(con(), Answer{}, code(c)).Attempt.Tried; got != wantLater {
			t.Errorf("%v after a call of a process before us: %v, want %v", c, got, wantLater)
		}
	}
	if got := AfterCreate(con(unmarked), Answer{}, errors.New("broken pipe")).Attempt.Tried; got != Open {
		t.Errorf("an error that is no answer: %v", got)
	}
}

func TestUnsureAnswersOfALeavingSnapshot(t *testing.T) {
	i := con(terminating, tried(Open))
	for n, wait := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		i.Attempt = AfterCreate(i, Answer{}, code(codes.Internal)).Attempt
		if i.Attempt.Unsure != n+1 || !i.Attempt.NotBefore.Equal(now.Add(wait)) {
			t.Errorf("try %d: %+v", n+1, i.Attempt)
		}
	}
	if _, gone := NextContentStep(i).(ReleaseContent); gone {
		t.Error("three prompt answers may all come from one short outage")
	}
	for tries := 0; ; tries++ {
		if _, gone := NextContentStep(i).(ReleaseContent); gone || tries > 10 {
			break
		}
		i.Now = i.Attempt.NotBefore
		i.Attempt = AfterCreate(i, Answer{}, code(codes.PermissionDenied)).Attempt
	}
	if waited := i.Now.Sub(now); waited != unsurePatience {
		t.Errorf("let go after %v", waited)
	}
	told := AfterCreate(con(terminating, tried(Open), func(i *ContentInput) {
		i.Attempt.Unsure, i.Attempt.UnsureSince, i.Content.Status = 2, now, AfterCreate(*i, Answer{}, code(codes.ResourceExhausted)).Status
	}), Answer{}, code(codes.ResourceExhausted)).Told
	if told == nil || told.Warning || !strings.Contains(told.Message, "code = ResourceExhausted") {
		t.Errorf("what the deletion waits for is told as %+v", told)
	}
	if got := AfterCreate(con(terminating), Answer{}, code(codes.DeadlineExceeded)).Attempt.Unsure; got != 0 {
		t.Error("S80 a call that may still be running is waited for, however often")
	}
	if got := AfterCreate(con(), Answer{}, code(codes.Internal)).Attempt.Unsure; got != 0 {
		t.Error("a living snapshot is never given up")
	}
}

// What a driver refuses for lack of parameters may exist all the same: somebody is told where to look.
func TestRefusalOfAGuess(t *testing.T) {
	given := func(i *ContentInput) { i.Attempt.LeavingSince = now.Add(-2 * time.Minute) }
	broken := func(i *ContentInput) { i.Content.Annotations[wellknown.AnnSnapshotParameters] = "{" }
	gone := func(i *ContentInput) { i.Class = nil }
	for name, i := range map[string]ContentInput{
		"no class": con(terminating, unrecorded, gone, given), "a record that cannot be read": con(terminating, broken, given),
	} {
		if create, ok := NextContentStep(i).(Create); !ok || len(create.Request.GetParameters()) > 0 {
			t.Errorf("%s: %+v", name, create)
		}
		refused := i
		refused.Attempt = AfterCreate(i, Answer{}, code(codes.InvalidArgument)).Attempt
		if release, ok := NextContentStep(refused).(ReleaseContent); !ok || release.Told == nil {
			t.Errorf("%s: %+v", name, NextContentStep(refused))
		}
	}
	known := con(terminating, given)
	known.Attempt = AfterCreate(known, Answer{}, code(codes.InvalidArgument)).Attempt
	known.Live = true
	if diff := cmp.Diff(ContentStep(ReleaseContent{}), NextContentStep(known)); diff != "" {
		t.Errorf("a refusal of the very same request settles it: %s", diff)
	}
}

func TestStatusFromAnswers(t *testing.T) {
	taken := past.Add(time.Minute)
	answer := Answer{Handle: "s-1", Taken: taken, Size: 5}
	broken := func(i *ContentInput) {
		cut(i)
		i.Content.Status.Error = &snapv1.VolumeSnapshotError{Message: ptr("x")}
	}
	fields := func(ready bool, at time.Time, size *int64) *snapv1.VolumeSnapshotContentStatus {
		return &snapv1.VolumeSnapshotContentStatus{SnapshotHandle: ptr("s-1"), ReadyToUse: &ready, CreationTime: ptr(at.UnixNano()), RestoreSize: size}
	}
	for _, c := range []struct {
		name   string
		in     ContentInput
		answer Answer
		want   *snapv1.VolumeSnapshotContentStatus
	}{
		{"S1 the first answer", con(), answer, fields(false, taken, ptr(int64(5)))},
		{"S62 no creation time", con(), Answer{Handle: "s-1", Ready: true}, fields(true, now, nil)},
		{"S59 nothing new is no write", con(cut), Answer{Handle: "s-1"}, nil},
		{"S59 ready at last", con(cut), Answer{Handle: "s-1", Ready: true}, fields(true, past.Time, nil)},
		{"S29 size learnt later", con(cut), answer, fields(false, past.Time, ptr(int64(5)))},
		{"S61 an answer ends the error", con(broken), Answer{Handle: "s-1"}, fields(false, past.Time, nil)},
	} {
		t.Run(c.name, func(t *testing.T) {
			after := AfterCreate(c.in, c.answer, nil)
			if diff := cmp.Diff(c.want, after.Status); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			if after.Attempt.Tried != Settled || after.Told != nil {
				t.Errorf("attempt %+v, told %+v", after.Attempt, after.Told)
			}
		})
	}
}

func TestAnotherSnapshotIsNoAnswer(t *testing.T) {
	after := AfterCreate(con(cut), Answer{Handle: "s-2", Ready: true}, nil)
	if *after.Status.SnapshotHandle != "s-1" || *after.Status.ReadyToUse || after.Told == nil {
		t.Errorf("W4 %+v", after)
	}
}

func TestFailuresAreToldOnce(t *testing.T) {
	const first = `Failed to create snapshot: failed to take snapshot of the volume vol-1: "rpc error: code = NotFound desc = no"`
	after := AfterCreate(con(), Answer{}, code(codes.NotFound))
	want := failing(&snapv1.VolumeSnapshotContentStatus{}, wellknown.ReasonSnapshotCreationFailed, first, "")
	if diff := cmp.Diff(want, Record{Status: after.Status, Told: after.Told}); diff != "" {
		t.Errorf("S64 B063 first failure (-want +got):\n%s", diff)
	}
	i := con()
	i.Content.Status = after.Status
	if again := AfterCreate(i, Answer{}, code(codes.NotFound)); again.Status != nil || again.Told != nil {
		t.Errorf("S64 the same cause under other first words: %+v", again)
	}
	later := AfterCreate(i, Answer{}, code(codes.OutOfRange))
	if later.Told == nil || later.Told.Reason != wellknown.ReasonSnapshotCheckFailed {
		t.Errorf("S64 another cause: %+v", later)
	}
	kept := AfterCreate(con(finished), Answer{}, code(codes.NotFound)).Status
	if *kept.SnapshotHandle != "s-1" || *kept.ReadyToUse {
		t.Errorf("S60 handle kept, not ready: %+v", kept)
	}
	poll := AfterPoll(con(byHand), Answer{}, ErrNotFound("s-1"))
	const unknown = "; look at the storage of driver sim.csi.example what the snapshot is called there; a handle cannot be changed here: snapshotter explain -n ns1 snap says how to import it anew"
	if got := *poll.Status.Error.Message; got != `Failed to create snapshot: failed to list snapshot for content snapcontent-u1: "can not find snapshot for snapshotID s-1"`+unknown {
		t.Errorf("S47 %s", got)
	}
	if got := *AfterPoll(con(byHand), Answer{}, code(codes.NotFound)).Status.Error.Message; !strings.HasSuffix(got, unknown) {
		t.Errorf("S47 %s", got)
	}
	if got := *AfterPoll(con(byHand), Answer{}, code(codes.PermissionDenied)).Status.Error.Message; strings.Contains(got, "; look") {
		t.Errorf("S47 advice about a handle that may be right: %s", got)
	}
	if got := *AfterPoll(con(cut), Answer{}, ErrNotFound("s-1")).Status.Error.Message; strings.Contains(got, "; look") {
		t.Errorf("S47 advice about a handle that nobody wrote: %s", got)
	}
}

func TestDelaysGrow(t *testing.T) {
	i, got := con(), []time.Duration{}
	for range 10 {
		i.Attempt = AfterCreate(i, Answer{}, code(codes.NotFound)).Attempt
		got = append(got, i.Attempt.NotBefore.Sub(now)/time.Second)
	}
	if diff := cmp.Diff([]time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300}, got); diff != "" {
		t.Errorf("S66 %s", diff)
	}
	i, got = con(cut), nil
	for range 6 {
		i.Attempt = AfterPoll(i, Answer{Handle: "s-1"}, nil).Attempt
		got = append(got, i.Attempt.NotBefore.Sub(now)/time.Second)
	}
	if diff := cmp.Diff([]time.Duration{1, 2, 4, 8, 15, 15}, got); diff != "" {
		t.Errorf("W-perf-5 polls: %s", diff)
	}
	i.Attempt.Failures = 20
	if got := AfterCreate(i, Answer{}, code(codes.Unavailable)).Attempt.NotBefore.Sub(now); got != busyMax {
		t.Errorf("a driver that comes back soon: %v", got)
	}
	asked := fault.RetryAfter(code(codes.DeadlineExceeded), 42*time.Second)
	for name, got := range map[string]After{"create": AfterCreate(con(), Answer{}, asked), "poll": AfterPoll(con(cut), Answer{}, asked), "delete": AfterDelete(con(finished), asked)} {
		if got.Attempt.NotBefore.Sub(now) != 42*time.Second {
			t.Errorf("B045 %s: the driver is at work until then: %v", name, got.Attempt.NotBefore.Sub(now))
		}
	}
}

func TestAfterDelete(t *testing.T) {
	if !AfterDelete(con(finished), nil).Attempt.Deleted {
		t.Error("S68 done")
	}
	if !AfterDelete(con(finished), fault.New(fault.DeleteSnapshot, status.Error(codes.NotFound, "what?"))).Attempt.Deleted {
		t.Error("B081 what the driver does not know is gone")
	}
	after := AfterDelete(con(finished), fault.New(fault.DeleteSnapshot, status.Error(codes.Internal, "busy 17")))
	if after.Attempt.Deleted || after.Told == nil || after.Told.Reason != wellknown.ReasonSnapshotDeleteError || !*after.Status.ReadyToUse {
		t.Errorf("S72 %+v", after)
	}
	i := con(finished)
	i.Content.Status = after.Status
	if again := AfterDelete(i, fault.New(fault.DeleteSnapshot, status.Error(codes.Internal, "busy 18"))); again.Told != nil || again.Status != nil {
		t.Errorf("S72 told once, whatever the counter: %+v", again)
	}
}

func TestAfterSecret(t *testing.T) {
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, "s")
	after := AfterSecret(con(finished, terminating), Delete{}, missing)
	if !after.Attempt.SecretMissing.Equal(now) || after.Told == nil || after.Told.Reason != wellknown.ReasonSnapshotDeleteError {
		t.Errorf("S88 %+v", after)
	}
	i := con(finished, terminating)
	i.Attempt = after.Attempt
	i.Now = now.Add(time.Minute)
	if later := AfterSecret(i, Delete{}, missing).Attempt.SecretMissing; !later.Equal(now) {
		t.Errorf("S88 the clock started at %v", later)
	}
	if forbidden := AfterSecret(con(finished, terminating), Delete{}, apierrors.NewForbidden(schema.GroupResource{}, "s", nil)); !forbidden.Attempt.SecretMissing.IsZero() {
		t.Error("S88 what may not be read may well exist")
	}
	if living := AfterSecret(con(), Create{}, missing); !living.Attempt.SecretMissing.IsZero() || living.Told.Reason != wellknown.ReasonSnapshotCreationFailed {
		t.Errorf("S67 %+v", living)
	}
}

// TestSecretsAreNamed: whoever reads that a secret is missing learns who named it, in what, and whether it is the right that
// is missing and not the secret.
func TestSecretsAreNamed(t *testing.T) {
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, "s")
	named := func(i *ContentInput) {
		i.Class = class("snapc", driverName)
		i.Class.Parameters = map[string]string{
			wellknown.ParamSnapshotterSecretName: "s", wellknown.ParamSnapshotterSecretNamespace: "n",
			wellknown.ParamSnapshotterListSecretName: "l", wellknown.ParamSnapshotterListSecretNamespace: "n",
		}
	}
	const annotated = "annotations snapshot.storage.kubernetes.io/deletion-secret-name and snapshot.storage.kubernetes.io/deletion-secret-namespace of its VolumeSnapshotContent name it"
	const created = "VolumeSnapshotClass snapc names it in its parameters csi.storage.k8s.io/snapshotter-secret-name and csi.storage.k8s.io/snapshotter-secret-namespace, and " + annotated
	const again = "it is tried again by itself, within --retry-interval-max (5m if not set), or at once with kubectl annotate vsc snapcontent-u1 --overwrite csi-tandem.io/retry=$(date +%s)"
	const without = "; if it stays missing for 2 minutes, the deletion goes on without it"
	for _, c := range []struct {
		name string
		in   ContentInput
		step ContentStep
		err  error
		want string
	}{
		{"create", con(named), Create{}, missing, created + "; create that secret; " + again},
		{"class gone", con(func(i *ContentInput) { i.Class = nil }), Create{}, missing, annotated + "; create that secret; " + again},
		{"poll", con(named), Poll{}, missing, "VolumeSnapshotClass snapc names it in its parameters csi.storage.k8s.io/snapshotter-list-secret-name and " +
			"csi.storage.k8s.io/snapshotter-list-secret-namespace; create that secret; " + again},
		{"poll of one that goes", con(named, terminating), Poll{}, missing, "VolumeSnapshotClass snapc names it in its parameters csi.storage.k8s.io/snapshotter-list-secret-name and " +
			"csi.storage.k8s.io/snapshotter-list-secret-namespace; create that secret; " + again},
		{"delete", con(named, terminating), Delete{}, missing, created + "; create that secret; " + again + without},
		{"create of one that goes", con(named, terminating), Create{}, missing, created + "; create that secret; " + again + without},
		// Catches a remedy that gives the right to another account than the one that lacks it.
		{"no right", con(named, terminating), Delete{}, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "s", errors.New(`User "x:y" cannot get resource`)),
			"add deploy/components/secrets to deploy/pair or deploy/node, or bind a role such as that in deploy/snapshotter/rbac.yaml to x:y; " + again},
		{"no answer", con(named), Delete{}, errors.New("connection refused"), ""},
	} {
		if record := LackSecret(c.in, c.step, c.err); record.Advice != c.want || !strings.HasSuffix(record.Failure, c.want) {
			t.Errorf("%s: %q, want %q; %s", c.name, record.Advice, c.want, record.Failure)
		}
	}
}

func TestAnswerOf(t *testing.T) {
	at := timestamppb.New(past.Time)
	got := AnswerOf(&csi.Snapshot{SnapshotId: "s-1", ReadyToUse: true, CreationTime: at, SizeBytes: 7})
	if diff := cmp.Diff(Answer{Handle: "s-1", Ready: true, Taken: past.Time, Size: 7}, got); diff != "" {
		t.Error(diff)
	}
	// A status holds nanoseconds, which end in 2262: a later time would be one of the eighteenth century there.
	later := &timestamppb.Timestamp{Seconds: time.Date(2263, 1, 1, 0, 0, 0, 0, time.UTC).Unix()}
	if last := (&timestamppb.Timestamp{Seconds: later.Seconds - 365*24*3600}).AsTime(); !AnswerOf(&csi.Snapshot{CreationTime: timestamppb.New(last)}).Taken.Equal(last) {
		t.Errorf("%v can be held", last)
	}
	for name, s := range map[string]*csi.Snapshot{"none": nil, "beyond what a status holds": {CreationTime: later}, "absent": {}, "epoch": {CreationTime: &timestamppb.Timestamp{}}, "nonsense": {CreationTime: &timestamppb.Timestamp{Nanos: -1}}} {
		if !AnswerOf(s).Taken.IsZero() {
			t.Errorf("S62 %s: a time that says nothing", name)
		}
	}
}

func TestErrorOfContentReachesSnapshot(t *testing.T) {
	i := in(taken)
	i.Content.Status = &snapv1.VolumeSnapshotContentStatus{Error: &snapv1.VolumeSnapshotError{Message: ptr("quota 1"), Time: ptr(metav1.NewTime(now))}}
	status, told, changed := BuildSnapshotStatus(i.Snapshot, i.Content)
	if !changed || *status.Error.Message != "quota 1" || len(told) != 1 || told[0].Reason != wellknown.ReasonSnapshotCreationFailed {
		t.Errorf("B063 status %+v, told %+v", status, told)
	}
	i.Snapshot.Status = status
	i.Content.Status.Error = &snapv1.VolumeSnapshotError{Message: ptr("quota 2")}
	if _, _, changed := BuildSnapshotStatus(i.Snapshot, i.Content); changed {
		t.Error("S64 the same error with another number")
	}
	i.Content.Status.Error = nil
	if status, _, changed := BuildSnapshotStatus(i.Snapshot, i.Content); !changed || status.Error != nil {
		t.Error("S28 an error that is over")
	}
	i.Content.Status.ReadyToUse, i.Content.Status.RestoreSize = ptr(true), ptr(int64(0))
	if status, _, _ := BuildSnapshotStatus(i.Snapshot, i.Content); !*status.ReadyToUse {
		t.Error("S30 readiness follows")
	}
	ready(&i)
	i.Content.Status.RestoreSize = ptr(int64(9))
	if _, _, changed := BuildSnapshotStatus(i.Snapshot, i.Content); changed {
		t.Error("S29 a size is written once")
	}
	i.Content.Status.ReadyToUse = ptr(false)
	if status, _, changed := BuildSnapshotStatus(i.Snapshot, i.Content); !changed || *status.ReadyToUse {
		t.Error("S30 and goes")
	}
}
