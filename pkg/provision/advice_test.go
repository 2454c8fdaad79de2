// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/csi-tandem/csi-tandem/pkg/topology"
)

// selfSaid are texts that say themselves what would help, and those that nobody who reads them can help.
var selfSaid = []string{
	"; use a longer --volume-name-uuid-length", "; use another --volume-name-template", "; use another key in a new class",
	"or take it from flags such as --create-parameter-labels", "reading namespace ", "ReferenceGrants cannot be read",
	"volume name prefix cannot be of length 0", "corrupted PVC object", "failed to translate storage class",
}

// expectAdvice is asked of every row: who is told that something is wrong is told what would help, too.
func expectAdvice(t *testing.T, step ClaimStep) {
	t.Helper()
	var err error
	switch s := step.(type) {
	case Reject:
		if s.Silent {
			return
		}
		err = s.Err
	case Reschedule:
		err = s.Err
	default:
		return
	}
	said := Sentence(err)
	if !strings.HasPrefix(said, err.Error()) {
		t.Errorf("%q does not begin with %q, which is what users know", said, err)
	}
	for _, text := range selfSaid {
		if strings.Contains(said, text) {
			return
		}
	}
	if said == err.Error() {
		t.Errorf("%q comes without advice", said)
	}
}

func TestSentence(t *testing.T) {
	plainError := errors.New("it broke")
	nodeGone := func() error {
		_, err := topology.NewIndex().Requirement(topology.Question{Driver: "d", Node: "n1"})
		return fmt.Errorf("asking: %w", err)
	}()
	for _, c := range []struct {
		err  error
		want string
	}{
		{plainError, "it broke"},
		{advise(plainError, "mend %s", "it"), "it broke; mend it"},
		{fmt.Errorf("outside: %w", advise(plainError, "mend it")), "outside: it broke; mend it"},
		{advise(pending{plainError}, "wait"), "it broke; wait"},
		{advise(advise(plainError, "inner"), "outer"), "it broke; outer"},
		{nodeGone, `asking: CSINode "n1" of the selected node not found; the scheduler is asked to choose another node`},
	} {
		if got := Sentence(c.err); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	if err := advise(pending{plainError}, "wait"); !isPending(err) || !errors.Is(err, plainError) {
		t.Error("advice hides what an error is")
	}
}

// Where the value that is wrong and the value that would be right are known, both are told.
func TestAdviceNamesWhatIsKnown(t *testing.T) {
	for _, c := range []struct {
		name  string
		edits []func(*ClaimInput)
		says  []string
	}{
		{"B033 too small", restore(asks("50Mi")), []string{"52428800", "asks for 1Gi or more", "--restore-size=grow"}},
		{"B033 too small and limited", restore(asks("50Mi"), func(in *ClaimInput) {
			in.RestoreSize = GrowSmaller
			in.Claim.Spec.Resources.Limits = in.Claim.Spec.Resources.Requests
		}), []string{"with a limit that allows it"}},
		{"a class of another driver", restore(func(in *ClaimInput) { in.Source.Content.Spec.Driver = "e" }), []string{`driver "e"`, `"d"`, "names a class of the snapshot's driver"}},
		{"another snapshot's content", restore(func(in *ClaimInput) { in.Source.Content.Spec.VolumeSnapshotRef.UID = "x" }), []string{`ns1/snap with UID "x"`, `"snap-uid"`}},
		{"another volume mode", restore(block), []string{`allow-volume-mode-change: "true" on content`, "has volumeMode Filesystem"}},
		{"parameters of the class", edits{parameters(reserved+"foo", "1")}, []string{`StorageClass in place of "sc"`}},
		{"half of a secret", edits{parameters(reserved+"secret-name", "s")}, []string{`parameters csi.storage.k8s.io/secret-name and csi.storage.k8s.io/secret-namespace of StorageClass "sc"`,
			"have to be there both, or none", "claim ns1/data"}},
		{"an unknown token", edits{parameters(reserved+"node-stage-secret-name", "${pvc.nane}", reserved+"node-stage-secret-namespace", "n")},
			[]string{`parameter csi.storage.k8s.io/node-stage-secret-name of StorageClass "sc"`, "${pv.name}, ${pvc.name}, ${pvc.namespace}, ${pvc.annotations['KEY']} for an annotation"}},
		{"a token that is not for namespaces", edits{parameters("csiNodeStageSecretName", "s", "csiNodeStageSecretNamespace", "${pvc.name}")},
			[]string{`parameter csiNodeStageSecretNamespace of StorageClass "sc", in which ${pv.name}, ${pvc.namespace} may stand`}},
	} {
		reject, ok := NextClaimStep(plain(c.edits...)).(Reject)
		if !ok {
			t.Errorf("%s: not refused", c.name)
			continue
		}
		for _, part := range c.says {
			if said := Sentence(reject.Err); !strings.Contains(said, part) {
				t.Errorf("%s: %q does not say %q", c.name, said, part)
			}
		}
	}
}
