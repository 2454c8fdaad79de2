// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/reconcile"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// setting is what stays the same through a life.
type setting struct {
	// zones are two, and strict says that the driver gives no volume in another zone than it was asked for.
	zones, strict bool
	// numbers says that an id is given once only, and secret that the class names one.
	numbers, secret bool
	// kept says that a claim which is deleted stays for a while, as long as pods use it.
	kept        bool
	lag, claims int
	// mourn says that the claims go before all comes to rest.
	mourn bool
}

// life is a few claims, and the processes that work for them one after another.
type life struct {
	setting
	t      testing.TB
	h      *kit.Harness
	driver *fickle
	now    *process
	tier   string
	// denied ends the lack of the right to the record, nil while there is none. bare says that the next process begins without the right, and aside
	// is what happens while nobody runs.
	denied func()
	bare   bool
	aside  func(*life)
	traps  []*trap
	// isWriting says that the record is being written, for which all others wait.
	isWriting bool
	rules     []func()
	chosen    int
	// excused are volumes that were bound although a removal is under way, or was: by a process that cannot know of it, without the right to the
	// record, or that was overtaken when its PersistentVolume was on the way.
	excused map[string]bool
	said    []string
	wrong   []string
}

// trap is what happens within a call.
type trap struct {
	place string
	nth   int
	do    func()
}

func (l *life) say(format string, args ...any) { l.said = append(l.said, fmt.Sprintf(format, args...)) }

func (l *life) complain(format string, args ...any) {
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
}

// spring lets happen what was to happen at this place.
func (l *life) spring(place string) {
	for i, t := range l.traps {
		if t.place != place {
			continue
		}
		if t.nth--; t.nth == 0 {
			l.traps = append(l.traps[:i:i], l.traps[i+1:]...)
			t.do()
		}
		return
	}
}

func newLife(t testing.TB, s setting) *life {
	l := &life{setting: s, t: t, h: kit.New(t), tier: "gold", excused: map[string]bool{}}
	l.driver = newFickle(l)
	return l
}

// fill puts into the world what is there before anybody works.
func (l *life) fill() {
	l.h.MaxTurns = 100_000
	l.h.Lag(l.lag)
	l.h.Driver.Capabilities = can()
	l.h.Put(l.class(), l.newSecret())
	if l.zones {
		l.h.Driver.Capabilities = withTopology()
		l.h.Put(twoZones()...)
		l.h.Play(l.scheduler())
	}
	l.h.Play(kit.Binder(l.h.API))
	for i := range l.claims {
		l.come(i)
	}
}

func (l *life) class() *storagev1.StorageClass {
	return kit.Class(kit.ClassName, tier(l.tier), func(c *storagev1.StorageClass) {
		if l.secret {
			c.Parameters[wellknown.ParamSecretName], c.Parameters[wellknown.ParamSecretNamespace] = secretKey.Name, secretKey.Namespace
		}
		if l.zones {
			kit.WaitForConsumer(c)
		}
	})
}

var secretKey = kube.Key{Namespace: kit.Namespace, Name: "s"}

func (l *life) newSecret() *corev1.Secret {
	return kit.Secret(secretKey.Name, map[string]string{"k": "v"})
}

// scheduler chooses a node for each claim that has none.
func (l *life) scheduler() kit.Room {
	look := func(kube.Change[*corev1.PersistentVolumeClaim]) []reconcile.Key {
		return []reconcile.Key{{Name: "all"}}
	}
	return kit.Room{Name: "scheduler", Keys: kit.On(look), Reconcile: func(context.Context, reconcile.Key) (reconcile.Result, error) {
		for _, c := range kit.All[*corev1.PersistentVolumeClaim](l.h.API) {
			if c.Annotations[wellknown.AnnSelectedNode] == "" {
				l.chosen++
				l.choose(kube.KeyOf(c), l.chosen)
			}
		}
		return reconcile.Result{}, nil
	}}
}

func (l *life) choose(key kube.Key, nth int) {
	if c, ok := kit.Read[*corev1.PersistentVolumeClaim](l.h.API, key); ok && c.Spec.VolumeName == "" && l.zones {
		kit.Edit(l.h.API, key, kit.OnNode([]string{"n1", "n2"}[nth%2]))
	}
}

func claimKey(i int) kube.Key {
	return kube.Key{Namespace: kit.Namespace, Name: []string{"data", "other"}[i]}
}

func (l *life) come(i int) {
	if _, ok := kit.Read[*corev1.PersistentVolumeClaim](l.h.API, claimKey(i)); ok {
		return
	}
	l.h.Put(kit.Claim(claimKey(i).Name, func(c *corev1.PersistentVolumeClaim) {
		c.UID = "" // each that comes under the name has its own
		if l.zones {
			kit.OnNode("n1")(c)
		}
		if l.kept {
			c.Finalizers = []string{"kubernetes.io/pvc-protection"}
		}
	}))
}

func (l *life) leave(i int) { kit.Remove[*corev1.PersistentVolumeClaim](l.h.API, claimKey(i)) }

// release lets claims go that were kept for their pods.
func (l *life) release() {
	for _, c := range kit.All[*corev1.PersistentVolumeClaim](l.h.API) {
		if c.DeletionTimestamp != nil {
			kit.Edit(l.h.API, kube.KeyOf(c), func(c *corev1.PersistentVolumeClaim) { c.Finalizers = nil })
		}
	}
}

// deny takes the right to the record away.
func (l *life) deny() {
	if l.denied != nil {
		return
	}
	l.h.EndNever() // what a process without the right remembers is lost with it
	l.denied = l.h.API.Script(kit.Rule{
		Resource: "configmaps", Err: apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no right")),
		Meanwhile: func() { l.now.ill, l.now.owes = true, true },
	})
}

// grant gives it back, and has it noticed.
func (l *life) grant() {
	if l.denied != nil {
		l.denied()
		l.denied = nil
	}
	if l.now.ill && l.now.begun {
		l.now.takeRecord()
	}
}

// heal is grant, and all that is remembered is written down.
func (l *life) heal() {
	l.grant()
	for range tries {
		if err := l.now.room.Sweep(l.h.Ctx); err == nil || l.h.HasEnded() {
			l.now.owes = false
			return
		}
	}
	l.t.Fatal("the record cannot be written")
}

// restart ends the process and starts the next one.
func (l *life) restart() {
	l.h.EndNever()
	l.h.Restart()
	if l.aside != nil {
		l.aside(l)
		l.aside = nil
	}
	if l.bare {
		l.deny()
	}
	l.begin()
}

// pass lets time go by.
func (l *life) pass(d time.Duration) {
	l.h.Horizon = d
	l.h.Settle()
	for l.h.HasEnded() {
		l.restart()
		l.h.Settle()
	}
}

// overtake lets another process lead, while this one is in mid-call and has not noticed.
func (l *life) overtake() {
	old := l.now
	if !old.begun || old.ill || old.owes || l.denied != nil || old.yield != nil || len(old.busy) == 0 {
		return
	}
	l.h.EndNever()
	old.yield = l.h.Overlap()
	l.begin()
	l.work(time.Second)
}

// workOn lets the rooms of a process do what waits, while one of them is in mid-call.
func (l *life) workOn() {
	if !l.isWriting {
		l.work(3 * time.Second)
	}
}

func (l *life) work(d time.Duration) {
	horizon := l.h.Horizon
	l.h.Horizon = d
	l.h.Settle()
	l.h.Horizon = horizon
}
