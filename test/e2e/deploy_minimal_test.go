// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// fullVariable makes every right be taken away in its turn, instead of some that chance chooses.
const fullVariable = "CSI_TANDEM_FULL"

// samples is how many rights are tried in a short run.
const samples = 4

// brief is how long a step of a life is waited for when it is expected to fail, at least; and so many times as long as the longest
// took with all rights, on whatever machine this is.
const (
	brief   = 8 * time.Second
	instead = 4
)

// TestEachRightIsNeeded takes one right away from an installation with every feature, and sees something fail: a step of the life of
// a volume and its snapshot does not come to its end, or the API server has refused something. Given back, all is well again
// without a restart. Catches a right that is granted, and even asked for, though nothing depends on it.
func TestEachRightIsNeeded(t *testing.T) {
	t.Parallel()
	theStage(t)
	// Grants of other namespaces are left out: the kind is defined while TestForeignSources runs, and no life here needs one.
	components := slices.DeleteFunc(slices.Clone(everyComponent), func(c string) bool { return c == "cross-namespace" })
	manifest := buildOverlays(t, map[string]overlay{"all": rightsOverlay("deploy/pair", components...)})["all"]
	brief := brief
	t.Run("all are there", func(t *testing.T) {
		i := install(t, "lacking-none", in("lacking-none", manifest))
		w, life := i.demanding()
		failed, longest := i.tryLife(w, "", life, patience)
		if failed != "" {
			t.Fatalf("with all rights: %s", failed)
		}
		brief = max(brief, instead*longest)
	})
	for n, v := range chosen(t, verbsOf(t, manifest, someNamespace+"-csi-tandem")) {
		t.Run(strings.ReplaceAll(string(v), "/", "."), func(t *testing.T) {
			t.Parallel()
			namespace := fmt.Sprint("lacking-", n)
			i := install(t, namespace, in(namespace, manifest))
			if count := i.takeAway(v); count == 0 {
				t.Fatalf("%q is granted by no role", v)
			}
			w, life := i.demanding()
			failed, _ := i.tryLife(w, v, life, brief)
			t.Logf("without %q: %s", v, failed)
			if failed == "" {
				t.Errorf("nothing fails without the right %q", v)
			}
			i.apply(i.manifest)
			w.repeats = 20 // what may not be written down is asked again
		})
	}
}

// chosen are all rights, or some of them by chance.
func chosen(t *testing.T, all []verb) []verb {
	t.Helper()
	if os.Getenv(fullVariable) != "" {
		return all
	}
	seed := rand.Uint64()
	if given := os.Getenv("CSI_TANDEM_SEED"); given != "" {
		var err error
		if seed, err = parseSeed(given); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("CSI_TANDEM_SEED=%d; %s=1 tries all", seed, fullVariable)
	chance := rand.New(rand.NewPCG(seed, 0))
	chance.Shuffle(len(all), func(a, b int) { all[a], all[b] = all[b], all[a] })
	return all[:samples]
}

// takeAway removes a verb from every role of the installation, and tells from how many.
func (i *installation) takeAway(v verb) int {
	i.Helper()
	count := 0
	cut := func(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
		var kept []rbacv1.PolicyRule
		for _, rule := range rules {
			granted := map[verb]bool{}
			if grant(granted, rule); granted[v] {
				action := string(v[strings.LastIndex(string(v), " ")+1:])
				rule.Verbs = slices.DeleteFunc(rule.Verbs, func(verb string) bool { return verb == action })
				count++
			}
			// A rule without verbs is none.
			if len(rule.Verbs) > 0 {
				kept = append(kept, rule)
			}
		}
		return kept
	}
	roles := shared.stage.Kube.RbacV1()
	for _, object := range decoded(i.T, i.manifest) {
		var err error
		switch o := object.(type) {
		case *rbacv1.ClusterRole:
			o.Rules = cut(o.Rules)
			_, err = roles.ClusterRoles().Update(i.ctx, o, metav1.UpdateOptions{})
		case *rbacv1.Role:
			o.Rules = cut(o.Rules)
			_, err = roles.Roles(i.namespace).Update(i.ctx, o, metav1.UpdateOptions{})
		}
		if err != nil {
			i.Fatal(err)
		}
	}
	return count
}

// isRefused tells whether the API server has refused a verb to the pair.
func (i *installation) isRefused(v verb) bool {
	for line := range i.seen(i.account).refused {
		fields := strings.Fields(line) // namespace group resource verb name
		if len(fields) >= 4 && strings.Join(fields[1:4], " ") == string(v) {
			return true
		}
	}
	return false
}

// tryLife goes through a life as far as that can be, and says what did not go on, or was refused; empty if all went well. The
// longest step is told too.
func (i *installation) tryLife(w *world, v verb, l life, brief time.Duration) (failed string, longest time.Duration) {
	w.Helper()
	for _, step := range i.steps(w, l) {
		step.do()
		began := time.Now()
		for !step.done() {
			if i.isRefused(v) {
				return "it was refused", longest
			}
			if time.Since(began) > brief {
				return "there is no end of: " + step.name, longest
			}
			time.Sleep(look)
		}
		longest = max(longest, time.Since(began))
	}
	switch {
	case i.isRefused(v):
		return "it was refused", longest
	case strings.HasPrefix(string(v), "coordination.k8s.io leases "):
		return lateTakeover(w), longest
	}
	return "", longest
}

// lateTakeover is what a standby says that may not watch the lease: it takes over by a timer, which no step can tell from a slow
// machine.
func lateTakeover(w *world) string {
	w.Helper()
	for _, text := range missing(w.T, w.provisioner) {
		if strings.Contains(text, "leases of coordination.k8s.io") && strings.Contains(text, "taking over at once when a leader leaves") {
			return text
		}
	}
	return ""
}

// step is something that a user wants, and how it is seen that he has it.
type step struct {
	name string
	do   func()
	done func() bool
}

func (i *installation) steps(w *world, l life) []step {
	isBound := func(name string) func() bool {
		return func() bool {
			claim, err := w.readClaim(name)
			return err == nil && claim.Status.Phase == corev1.ClaimBound
		}
	}
	left := func() int {
		volumes, err := w.volumes()
		w.mustNot(err)
		return len(volumes)
	}
	return []step{
		{"making a volume", func() { w.claim("data", l.class, l.edit) }, isBound("data")},
		{"telling of it", func() {}, func() bool { return len(w.messages("data")) > 0 }},
		{"taking a snapshot", func() { w.snapshot("snap", "data", l.snapshotClass) }, func() bool {
			s, err := w.readSnapshot("snap")
			return err == nil && s.Status != nil && ptr.Deref(s.Status.ReadyToUse, false)
		}},
		{"restoring it", func() { w.claim("restored", l.class, l.edit, fromSnapshot("snap")) }, isBound("restored")},
		{"cloning the volume", func() { w.claim("cloned", l.class, l.edit, fromClaim("data")) }, isBound("cloned")},
		{"deleting the snapshot", func() { w.deleteSnapshot("snap") }, func() bool {
			_, err := w.readSnapshot("snap")
			return apierrors.IsNotFound(err)
		}},
		{"measuring", func() {}, func() bool { return i.measured(w) == 2 }},
		{"measuring no more", func() { i.unmeasure(w) }, func() bool { return i.measured(w) == 0 }},
		{"sparing what a claim needs", func() { i.makeStrange(w, w.bound("cloned")) }, func() bool {
			return i.seen(i.account).used["core persistentvolumeclaims get"]
		}},
		{"deleting the volumes", func() {
			for _, name := range []string{"data", "restored", "cloned"} {
				w.deleteClaim(name)
			}
		}, func() bool { return left() == 0 }},
	}
}

func (i *installation) measured(w *world) int {
	objects, err := w.kube.StorageV1().CSIStorageCapacities(i.namespace).List(w.ctx, metav1.ListOptions{})
	w.mustNot(err)
	return len(objects.Items)
}
