// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
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
	said := fault.Sentence(err)
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
		if got := fault.Sentence(c.err); got != c.want {
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
		{"no such snapshot", restore(func(in *ClaimInput) { *in.Source = SourceState{SnapshotErr: errors.New("no such thing")} }), []string{"see that VolumeSnapshot ns1/snap exists"}},
		{"a class of another driver", restore(func(in *ClaimInput) { in.Source.Content.Spec.Driver = "e" }), []string{`driver "e"`, `"d"`, "names a class of the snapshot's driver"}},
		{"another snapshot's content", restore(func(in *ClaimInput) { in.Source.Content.Spec.VolumeSnapshotRef.UID = "x" }), []string{`ns1/snap with UID "x"`, `"snap-uid"`}},
		{"another volume mode", restore(block), []string{`allow-volume-mode-change: "true" on content`, "has volumeMode Filesystem"}},
		{"parameters of the class", edits{parameters(reserved+"foo", "1")}, []string{`StorageClass in place of "sc"`}},
		{"half of a secret", edits{parameters(reserved+"secret-name", "s")}, []string{`parameters csi.storage.k8s.io/secret-name and csi.storage.k8s.io/secret-namespace of StorageClass "sc"`,
			"have to be there both, or none; make another class in its place, as parameters"}},
		{"a secret by its old names, too", edits{parameters(reserved+"node-stage-secret-name", "s", reserved+"node-stage-secret-namespace", "n", "csiNodeStageSecretName", "s")},
			[]string{`parameters csi.storage.k8s.io/node-stage-secret-name and csiNodeStageSecretName and`, `of which those without csi.storage.k8s.io/ are the old names of the others: leave the old ones out; make another class`}},
		{"a secret without a name", edits{parameters(reserved+"secret-name", "", reserved+"secret-namespace", "n")}, []string{"which need a value both, or have to be left out both; make another class"}},
		{"an unknown token", edits{parameters(reserved+"node-stage-secret-name", "${pvc.nane}", reserved+"node-stage-secret-namespace", "n")},
			[]string{`parameter csi.storage.k8s.io/node-stage-secret-name of StorageClass "sc"`, "${pv.name}, ${pvc.name}, ${pvc.namespace}, ${pvc.annotations['KEY']} for an annotation that the claim has; make another class"}},
		{"an annotation that the claim has not", edits{parameters(reserved+"secret-name", "${pvc.annotations['team']}", reserved+"secret-namespace", "n")},
			[]string{"claim ns1/data has to have the annotations that are named there, with values that make a valid name: set or correct them, or make another class"}},
		{"a token that is not for namespaces", edits{parameters("csiNodeStageSecretName", "s", "csiNodeStageSecretNamespace", "${pvc.name}")},
			[]string{`parameter csiNodeStageSecretNamespace of StorageClass "sc", which may hold these and no other tokens: ${pv.name}, ${pvc.namespace}; make another class`}},
		{"an annotation never chooses the namespace", edits{parameters(reserved+"secret-name", "s", reserved+"secret-namespace", "${pvc.annotations['team']}")},
			[]string{"${pv.name}, ${pvc.namespace}; make another class"}},
	} {
		reject, ok := NextClaimStep(plain(c.edits...)).(Reject)
		if !ok {
			t.Errorf("%s: not refused", c.name)
			continue
		}
		for _, part := range c.says {
			if said := fault.Sentence(reject.Err); !strings.Contains(said, part) {
				t.Errorf("%s: %q does not say %q", c.name, said, part)
			}
		}
	}
}

// TestMissingSecretsAreAdvised: who made it missing, when it is looked for again, how to hasten that, and that a deletion does not
// wait for ever. Catches advice that only says that something goes on by itself, some minutes later.
func TestMissingSecretsAreAdvised(t *testing.T) {
	notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, "s")
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "s", errors.New(`User "x:y" cannot get resource`))
	named := plain(parameters(reserved+"secret-name", "s", reserved+"secret-namespace", "n"))
	gone := plain(func(in *ClaimInput) { in.Claim, in.Class = nil, nil })
	recorded := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v", Annotations: map[string]string{wellknown.AnnDeletionSecretName: "s", wellknown.AnnDeletionSecretNamespace: "n"}}}
	gold := "gold"
	// Catches a remedy that gives the right to another account than the one that lacks it.
	const grant = "add deploy/components/secrets to deploy/pair or deploy/node, or bind a role such as that in deploy/provisioner/rbac.yaml to x:y, and "
	const soon = "within --retry-interval-max (5m if not set)"
	const claim, volume = "kubectl annotate pvc -n ns1 data --overwrite csi-tandem.io/retry=$(date +%s)", "kubectl annotate pv v --overwrite csi-tandem.io/retry=$(date +%s)"
	const without = "; if it stays missing for 2 minutes, one try is made without it"
	for _, c := range []struct {
		name       string
		err        error
		says, lets []string
	}{
		{"a claim", LackSecret(named, notFound), []string{`StorageClass "sc" names it`, "create that secret", soon, claim}, []string{without}},
		{"a claim, by rights", LackSecret(named, forbidden), []string{grant, soon, claim}, []string{without}},
		{"nobody's", LackSecret(gone, notFound), []string{"create that secret", soon}, []string{"annotate"}},
		{"a deletion", LackDeletionSecret(recorded, notFound), []string{"of the PersistentVolume name it", soon, volume, without}, nil},
		{"a deletion, by rights", LackDeletionSecret(recorded, forbidden), []string{grant, soon, volume}, []string{without}},
		{"an attributes class", blameAttributes(plain(func(in *ClaimInput) { in.Claim.Spec.VolumeAttributesClassName = &gold }), errors.New("no")), []string{`"gold" exists`, soon, claim, "or delete this claim"}, nil},
		{"an open call", lackAbandonedSecret(notFound), []string{"nobody waits for the volume any more", without}, []string{"annotate"}},
	} {
		said := fault.Sentence(c.err)
		for _, part := range c.says {
			if !strings.Contains(said, part) {
				t.Errorf("%s: %q does not say %q", c.name, said, part)
			}
		}
		for _, part := range c.lets {
			if strings.Contains(said, part) {
				t.Errorf("%s: %q says %q, which is not so", c.name, said, part)
			}
		}
		if len(said) > 900 {
			t.Errorf("%s: %d bytes, and an event holds 1024", c.name, len(said))
		}
	}
	if plainError := errors.New("it broke"); LackSecret(named, plainError) != plainError || LackRight(plainError) != plainError {
		t.Error("advice about an error that is none of a secret")
	}
	// A webhook that refuses wants something else than a role.
	if webhook := apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumes"}, "v", errors.New("no volumes on Fridays")); fault.Sentence(LackRight(webhook)) != webhook.Error() {
		t.Error("a role is advised against a webhook")
	}
}
