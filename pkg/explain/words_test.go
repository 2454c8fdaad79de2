// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
)

var update = flag.Bool("update", false, "write the golden files anew")

// machines are the closed sets of steps: the package and the method that makes a type one of them.
var machines = []struct{ dir, method string }{
	{"provision", "isClaimStep"}, {"provision", "isVolumeStep"}, {"provision", "isSourceStep"},
	{"snapshot", "snapshotStep"}, {"snapshot", "contentStep"},
}

var (
	errSample = errors.New("the reason")
	attempt   = &provision.Attempt{Request: &csi.CreateVolumeRequest{Name: "pvc-1"}}
	toldThis  = snapshot.Told{Reason: "Reason", Message: "the message"}
	create    = snapshot.Create{Request: &csi.CreateSnapshotRequest{Name: "snapshot-1", SourceVolumeId: "vol-1"}}
	meta1     = func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
)

// samples are one value or more of every type of step.
func samples() []any {
	source := provision.Source{Kind: "VolumeSnapshot", Namespace: "ns", Name: "monday"}
	return []any{
		provision.Ignore{Why: "the claim has a volume"},
		provision.Wait{Why: "the next repeat is not due yet", After: 2 * time.Minute},
		provision.AlreadyProvisioned{Volume: &corev1.PersistentVolume{ObjectMeta: meta1("pvc-1")}},
		provision.LeaveToPopulator{}, provision.ReadSource{Source: source}, provision.ProtectSource{Source: source},
		provision.ReadAttributes{Name: "gold"}, provision.ReadNamespace{Name: "ns"}, provision.Create{Attempt: attempt}, provision.Resume{Attempt: attempt},
		provision.Save{Attempt: attempt}, provision.Reject{Err: errSample}, provision.Reject{Err: errSample, Silent: true},
		provision.Reject{Err: errSample, Waiting: true}, provision.Reschedule{Err: errSample},
		provision.AskRoom{}, provision.BecomeOwner{Node: "n1"}, provision.Discard{Attempt: attempt}, provision.FinishUndo{Attempt: attempt},
		provision.StandBack{Why: "the node has no room", Err: errSample}, provision.StandBack{Why: "the node has no room", Err: errSample, Tell: true},
		provision.Protect{}, provision.Unprotect{}, provision.WaitDetached{Node: "n1"}, provision.Confirm{},
		provision.Delete{Handle: "vol-1"}, provision.Delete{Handle: "vol-1", MayLackSecret: true}, provision.Release{},
		provision.Hold{By: "claim ns/a"}, provision.Lift{},

		snapshot.Ignore{Why: "settled"}, snapshot.Wait{Why: "the driver has the snapshot in hand", After: time.Millisecond},
		snapshot.Tell{Told: toldThis}, snapshot.Reject{Reason: "Reason", Message: "the message"},
		snapshot.Protect{Finalizers: []string{"f/1", "f/2"}}, snapshot.Protect{Class: "gold", Finalizers: []string{"f/1"}},
		snapshot.ProtectSource{}, snapshot.ReleaseSource{}, snapshot.FetchSnapshot{}, snapshot.FetchContent{Name: "c"},
		snapshot.FetchVolume{Name: "pv"}, snapshot.CreateContent{Content: &snapv1.VolumeSnapshotContent{
			ObjectMeta: meta1("snapcontent-1"), Spec: snapv1.VolumeSnapshotContentSpec{Driver: "d"},
		}},
		snapshot.ProtectContent{}, snapshot.Bind{}, snapshot.Bind{Class: "gold"}, snapshot.CopyStatus{},
		snapshot.CopyStatus{Told: []snapshot.Told{toldThis}}, snapshot.WaitForRestore{Claims: []string{"ns/a", "ns/b"}},
		snapshot.MarkContent{}, snapshot.DeleteContent{}, snapshot.Unserved{Told: toldThis}, snapshot.AbandonContent{Told: toldThis},
		snapshot.Release{Finalizers: []string{"f/1"}},

		snapshot.Mark{}, create, snapshot.Poll{Handle: "snap-1", Get: true, Again: &create}, snapshot.Poll{Handle: "snap-1", List: true},
		snapshot.Record{}, snapshot.Record{Told: &toldThis}, snapshot.Record{Failure: "the failure"},
		snapshot.Record{Failure: "the failure", Told: &toldThis}, snapshot.DropMark{}, snapshot.Confirm{},
		snapshot.Delete{Handle: "snap-1"}, snapshot.Delete{Handle: "snap-1", WithoutSecret: true}, snapshot.Remove{Handle: "snap-2"}, snapshot.ClearStatus{},
		snapshot.ReleaseContent{}, snapshot.ReleaseContent{Told: &toldThis},
	}
}

// TestEveryStepHasWords walks the sources, so that a step which is added to a machine cannot be forgotten here.
func TestEveryStepHasWords(t *testing.T) {
	var known []string
	for _, s := range samples() {
		known = append(known, strings.TrimPrefix(fmt.Sprintf("%T", s), "*"))
		words := Say(s)
		if words.Does == "" || strings.Contains(words.Does, "no words here") || strings.Contains(words.Does, "%!") {
			t.Errorf("%T: %q is no sentence", s, words.Does)
		}
	}
	var declared []string
	for _, m := range machines {
		steps := stepsIn(t, m.dir, m.method)
		if len(steps) == 0 {
			t.Errorf("no type of package %s has a method %s: which steps does that machine have now?", m.dir, m.method)
		}
		declared = append(declared, steps...)
	}
	for _, d := range declared {
		if !slices.Contains(known, d) {
			t.Errorf("%s has no words: give it a row in the table of sentences and a sample in this test", d)
		}
	}
	for of := range sentences {
		if !slices.Contains(declared, of.String()) {
			t.Errorf("%v has words and is no step of any machine", of)
		}
	}
}

// TestEveryMachineIsKnown: a new machine of claims, volumes or snapshots is one that users wait for.
func TestEveryMachineIsKnown(t *testing.T) {
	want := []string{"NextClaimStep", "NextContentStep", "NextSnapshotStep", "NextSourceStep", "NextVolumeStep"}
	var got []string
	for _, dir := range []string{"provision", "snapshot"} {
		each(t, dir, func(f *ast.FuncDecl) {
			if f.Recv == nil && strings.HasPrefix(f.Name.Name, "Next") && strings.HasSuffix(f.Name.Name, "Step") {
				got = append(got, f.Name.Name)
			}
		})
	}
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("machines that explain asks (-) and those that there are (+):\n%s", d)
	}
}

// stepsIn lists the types of a package that have a method, as "package.Type".
func stepsIn(t *testing.T, dir, method string) []string {
	t.Helper()
	var found []string
	each(t, dir, func(f *ast.FuncDecl) {
		if f.Recv == nil || f.Name.Name != method {
			return
		}
		of := f.Recv.List[0].Type
		if star, ok := of.(*ast.StarExpr); ok {
			of = star.X
		}
		if name, ok := of.(*ast.Ident); ok {
			found = append(found, dir+"."+name.Name)
		}
	})
	return found
}

func each(t *testing.T, dir string, do func(*ast.FuncDecl)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal("no sources of", dir, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				do(f)
			}
		}
	}
}

// TestSentences pins the words: people search for them.
func TestSentences(t *testing.T) {
	var b strings.Builder
	for _, s := range samples() {
		words := Say(s)
		fmt.Fprintf(&b, "%T: %s\n", s, words.Does)
		if words.Event != "" {
			fmt.Fprintf(&b, "    event: %s\n", words.Event)
		}
	}
	golden(t, "sentences.txt", b.String())
}

// TestStrangers: what is not a step, and what is half filled, gets a sentence too.
func TestStrangers(t *testing.T) {
	for _, s := range []any{nil, 7, provision.Create{}, provision.Reject{}, provision.AlreadyProvisioned{}, snapshot.Create{}, snapshot.CreateContent{}, snapshot.Poll{}} {
		if words := Say(s); words.Does == "" {
			t.Errorf("%#v: nothing is said", s)
		}
		requestOf(s)
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got), -update writes it anew:\n%s", path, d)
	}
}
