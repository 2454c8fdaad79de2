// SPDX-License-Identifier: Apache-2.0

package volume_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// write makes up a life.
func write(n uint64) []move {
	r := rand.New(rand.NewPCG(n, 1))
	var moves []move
	for range 4 + r.IntN(10) {
		m := oneOf(r, byPeople, byPeople, byPeople, byDriver, byDriver, byServer, byProcess, byProcess)(r)
		moves = append(moves, m)
	}
	return moves
}

func oneOf[T any](r *rand.Rand, things ...T) T { return things[r.IntN(len(things))] }

// byPeople is what users and administrators do.
func byPeople(r *rand.Rand) move {
	name := oneOf(r, names...)
	handle := kit.VolumeHandle(oneOf(r, "v", "w"))
	switch r.IntN(14) {
	case 0, 1, 2, 3:
		return move{"the claim of " + name + " goes", func(l *life) { l.leave(name) }}
	case 4:
		return move{name + " is to be retained", func(l *life) {
			l.edit(name, func(v *corev1.PersistentVolume) {
				l.kept[v.Spec.CSI.VolumeHandle] = true
				v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
			})
		}}
	case 5:
		return move{name + " is to be deleted", func(l *life) {
			l.edit(name, func(v *corev1.PersistentVolume) {
				v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
			})
		}}
	case 6:
		return move{name + " is taken off its claim", func(l *life) {
			l.edit(name, func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil })
		}}
	case 7, 8:
		return lead(r, name)
	case 9, 10:
		return move{name + " is deleted", func(l *life) {
			if v, ok := kit.Read[*corev1.PersistentVolume](l.API, kube.Key{Name: name}); ok && name == "twin" {
				l.kept[v.Spec.CSI.VolumeHandle] = true // nobody has let it go
			}
			kit.Remove[*corev1.PersistentVolume](l.API, kube.Key{Name: name})
		}}
	case 11:
		return move{"others hold " + name, func(l *life) {
			l.edit(name, func(v *corev1.PersistentVolume) { kube.AddFinalizer(v, foreign) })
		}}
	case 12:
		return move{"others let go of " + name, func(l *life) {
			l.edit(name, func(v *corev1.PersistentVolume) { kube.RemoveFinalizer(v, foreign) })
		}}
	default:
		bound := r.IntN(2) == 0
		return move{fmt.Sprintf("a second PersistentVolume for %s, bound: %v", handle, bound), func(l *life) { l.double(handle, bound) }}
	}
}

// leave deletes the claim that a volume leads to.
func (l *life) leave(name string) {
	if v, ok := kit.Read[*corev1.PersistentVolume](l.API, kube.Key{Name: name}); ok && v.Spec.ClaimRef != nil {
		kit.Remove[*corev1.PersistentVolumeClaim](l.API, kube.Key{Namespace: v.Spec.ClaimRef.Namespace, Name: v.Spec.ClaimRef.Name})
	}
}

// lead gives a volume to a new claim, in one of the ways that people do.
func lead(r *rand.Rand, name string) move {
	names, bound := r.IntN(2) == 0, r.IntN(3) == 0
	return move{fmt.Sprintf("%s is led to a new claim, which names it: %v, bound: %v", name, names, bound), func(l *life) {
		v, ok := kit.Read[*corev1.PersistentVolume](l.API, kube.Key{Name: name})
		if !ok || v.DeletionTimestamp != nil {
			return
		}
		claim := l.newClaim()
		if names {
			claim.Spec.VolumeName = name
		}
		if bound {
			kit.BoundTo(name)(claim)
		}
		l.Put(claim)
		l.edit(name, func(v *corev1.PersistentVolume) {
			phase := v.Status.Phase
			kit.ClaimedBy(claim)(v)
			if !bound {
				v.Status.Phase = phase
			}
		})
	}}
}

func (l *life) newClaim() *corev1.PersistentVolumeClaim {
	l.claims++
	return kit.Claim(fmt.Sprint("new-", l.claims), func(c *corev1.PersistentVolumeClaim) { c.UID = types.UID(fmt.Sprint("uid-", l.claims)) })
}

// double makes a second PersistentVolume of a volume, as an administrator does who wants it in two namespaces.
func (l *life) double(handle string, bound bool) {
	if _, ok := kit.Read[*corev1.PersistentVolume](l.API, kube.Key{Name: "twin"}); ok {
		return
	}
	twin := kit.Volume("twin", func(v *corev1.PersistentVolume) { v.Spec.CSI.VolumeHandle, v.Annotations = handle, nil })
	if bound {
		claim := l.newClaim()
		kit.BoundTo("twin")(claim)
		l.Put(claim)
		kit.ClaimedBy(claim)(twin)
	}
	l.unheard[handle] = l.unheard[handle] || l.asked[handle] // who makes it has to look whether the volume is there
	l.Put(twin)
}

// byDriver is what the next deletion comes to.
func byDriver(r *rand.Rand) move {
	open := []codes.Code{codes.Internal, codes.DeadlineExceeded, codes.Aborted}
	reply := kit.Reply{Code: oneOf(r, append(open, codes.OK, codes.OK, codes.NotFound, codes.FailedPrecondition)...), Text: "the driver says so"}
	reply.Done = r.IntN(2) == 0 && (reply.Code == codes.Internal || reply.Code == codes.DeadlineExceeded)
	text := fmt.Sprintf("the next deletion ends with %s, done: %v", reply.Code, reply.Done)
	during := move{}
	if r.IntN(2) == 0 {
		during = byPeople(r)
		text += ", and during it " + during.text
	}
	return move{text, func(l *life) {
		if during.do != nil {
			reply.Meanwhile = func() { during.do(l) }
		}
		l.Driver.Next("DeleteVolume", reply)
	}}
}

// byServer is what becomes of the next requests.
func byServer(r *rand.Rand) move {
	rule := kit.Rule{
		Verb: oneOf(r, "get", "patch", "delete", ""), Resource: oneOf(r, "persistentvolumes", "persistentvolumeclaims"), Times: 1 + r.IntN(3),
		Err: oneOf[error](r, serverError(), apierrors.NewTooManyRequestsError("slow down"), apierrors.NewConflict(schema.GroupResource{Resource: "x"}, "", errors.New("conflict"))),
	}
	rule.Done = r.IntN(2) == 0 && apierrors.IsInternalError(rule.Err)
	return move{fmt.Sprintf("the next %d %s of %s: %v, done: %v", rule.Times, rule.Verb, rule.Resource, rule.Err, rule.Done), func(l *life) { l.API.Script(rule) }}
}

// byProcess is what becomes of the caches and of those who read them.
func byProcess(r *rand.Rand) move {
	nth, turns, pass := 1+r.IntN(4), r.IntN(4), oneOf(r, time.Second, 10*time.Second, 10*time.Minute)
	return oneOf(r,
		move{"the caches stand still", func(l *life) { l.held = true; l.Stores.Hold() }},
		move{"the caches go on", (*life).sync},
		move{fmt.Sprintf("the caches lag %d turns behind", turns), func(l *life) { l.Lag(turns); l.lag, l.held = turns, true }},
		move{fmt.Sprintf("the process dies before effect %d", nth), func(l *life) { l.EndBefore(nth) }},
		move{fmt.Sprintf("the process dies after effect %d", nth), func(l *life) { l.EndAfter(nth) }},
		move{"another process takes over", (*life).restart},
		move{fmt.Sprint(pass, " pass"), func(l *life) { l.step(pass) }},
		move{fmt.Sprint(pass, " pass"), func(l *life) { l.step(pass) }},
	)
}
