// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// move is one thing that is done to a life. It is chosen before the life begins, so that a life can be played again without some of them.
type move struct {
	text string
	do   func(*life)
}

// author writes the lives: what happens in one follows from its seed alone.
type author struct {
	*rand.Rand
	setting
}

func write(seed uint64) (setting, []move) {
	a := &author{Rand: rand.New(rand.NewPCG(seed, 0))}
	a.zones = a.one(2)
	a.strict, a.numbers, a.secret, a.kept = a.zones && a.one(3), a.one(2), a.one(3), a.one(4)
	a.lag, a.claims, a.mourn = max(a.IntN(6)-2, 0), 1+a.IntN(4)/3, a.one(2)
	var moves []move
	for range 1 + a.IntN(4) {
		moves = append(moves, a.act()...)
	}
	return a.setting, moves
}

// one is true once in so many times.
func (a *author) one(in int) bool { return a.IntN(in) == 0 }

func pick[T any](a *author, from ...T) T { return from[a.IntN(len(from))] }

// act writes what belongs together: faults come before what they disturb, and something ends or changes after it.
func (a *author) act() (moves []move) {
	for range 1 + a.IntN(3) {
		moves = append(moves, a.fault()...)
	}
	for range a.IntN(3) {
		moves = append(moves, a.trap())
	}
	d := pick(a, 0, time.Second, time.Second, 5*time.Second, 30*time.Second, 3*time.Minute)
	pass := move{fmt.Sprint("let pass ", d), func(l *life) { l.pass(d) }}
	switch a.IntN(5) {
	case 0, 1:
		moves = append(moves, a.endAt(), pass)
	case 2, 3:
		moves = append(moves, pass, a.endNow())
	default:
		moves = append(moves, pass)
	}
	for range a.IntN(2) {
		moves = append(moves, a.happening(true))
	}
	return moves
}

func (a *author) fault() []move {
	switch a.IntN(10) {
	case 0, 1, 2, 3:
		return []move{a.creation()}
	case 4, 5, 6:
		n := 1 + a.IntN(2)
		small := move{fmt.Sprintf("the next %d new volumes are too small", n), func(l *life) { l.driver.small = n }}
		return []move{small, a.removal()}
	case 7:
		return a.fullNode()
	default:
		return []move{a.request()}
	}
}

// fullNode writes that an answer is lost, that there is no room on the node after it, and what happens when another node's turn has come.
func (a *author) fullNode() []move {
	inner := a.happening(false)
	if i := a.IntN(a.claims); a.one(2) {
		inner = move{fmt.Sprintf("claim %d goes", i), func(l *life) { l.leave(i) }}
	}
	lost := reply{code: pick(a, codes.DeadlineExceeded, codes.Unavailable), when: pick(a, before, after), times: 1}
	return []move{{fmt.Sprintf("CreateVolume → %v, done %v, and then no room twice", lost.code, lost.when == after), func(l *life) {
		first := lost
		l.driver.replies[fault.CreateVolume] = append(l.driver.replies[fault.CreateVolume], &first, &reply{code: codes.ResourceExhausted, times: 2})
	}}, a.laid("CreateVolume waits", 4, inner)}
}

// creation writes how calls of CreateVolume end.
func (a *author) creation() move {
	early := []codes.Code{
		codes.DeadlineExceeded, codes.Unavailable, codes.Aborted, codes.Internal, codes.Unknown, codes.Canceled, codes.ResourceExhausted, codes.ResourceExhausted,
		codes.PermissionDenied, codes.NotFound, codes.FailedPrecondition, codes.AlreadyExists, codes.InvalidArgument, codes.OutOfRange,
	}
	late := []codes.Code{codes.DeadlineExceeded, codes.Unavailable, codes.Internal, codes.Unknown, codes.Canceled}
	return a.reply(fault.CreateVolume, early, late)
}

// removal writes how calls of DeleteVolume end.
func (a *author) removal() move {
	early := []codes.Code{
		codes.DeadlineExceeded, codes.Unavailable, codes.Aborted, codes.Internal, codes.Unknown, codes.ResourceExhausted, codes.PermissionDenied, codes.FailedPrecondition,
	}
	late := []codes.Code{codes.DeadlineExceeded, codes.Unavailable, codes.Internal, codes.Unknown}
	return a.reply(fault.DeleteVolume, early, late)
}

func (a *author) reply(op fault.Operation, early, late []codes.Code) move {
	r := reply{code: pick(a, early...), times: pick(a, 1, 1, 2, 5, 10)}
	text := fmt.Sprintf("%d × %s → %v, nothing done", r.times, op, r.code)
	switch a.IntN(3) {
	case 0:
		r.code, r.when = pick(a, late...), after
		text = fmt.Sprintf("%d × %s → %v, though done", r.times, op, r.code)
	case 1:
		r.code, r.when, r.takes = codes.DeadlineExceeded, later, pick(a, time.Second, 7*time.Second, 30*time.Second, 2*time.Minute, 20*time.Minute)
		text = fmt.Sprintf("%d × %s → %v, done %v later", r.times, op, r.code, r.takes)
	}
	return move{text, func(l *life) {
		again := r // each life uses up its own
		l.driver.replies[op] = append(l.driver.replies[op], &again)
	}}
}

// request writes how requests to the API server fail.
func (a *author) request() move {
	lost := apierrors.NewInternalError(errors.New("no answer"))
	conflict := apierrors.NewConflict(schema.GroupResource{}, "", errors.New("changed"))
	r := pick(a,
		kit.Rule{Verb: "create", Resource: "persistentvolumes", Err: apierrors.NewBadRequest("x")},
		kit.Rule{Verb: "create", Resource: "persistentvolumes", Err: lost},
		kit.Rule{Verb: "create", Resource: "persistentvolumes", Err: lost, Done: true},
		kit.Rule{Verb: "create", Resource: "persistentvolumes", Err: apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("x"))},
		kit.Rule{Verb: "patch", Resource: "configmaps", Err: lost},
		kit.Rule{Verb: "patch", Resource: "configmaps", Err: lost, Done: true},
		kit.Rule{Verb: "patch", Resource: "configmaps", Err: conflict},
		kit.Rule{Verb: "patch", Resource: "persistentvolumes", Err: lost, Done: true},
		kit.Rule{Verb: "patch", Resource: "persistentvolumes", Err: conflict},
		kit.Rule{Verb: "delete", Resource: "persistentvolumes", Err: lost, Done: true},
		kit.Rule{Verb: "get", Resource: "persistentvolumes", Err: lost},
		kit.Rule{Verb: "list", Resource: "persistentvolumes", Err: lost},
		kit.Rule{Verb: "get", Resource: "secrets", Err: lost},
		kit.Rule{Verb: "patch", Resource: "persistentvolumeclaims", Err: conflict},
	)
	r.Times = 1 + a.IntN(3)
	what := "fails"
	if r.Done {
		what = "is done, and its answer lost"
	}
	return move{fmt.Sprintf("%d × %s %s %s: %v", r.Times, r.Verb, r.Resource, what, r.Err), func(l *life) {
		l.rules = append(l.rules, l.h.API.Script(r))
	}}
}

// trap writes what happens within a call, or right before it.
func (a *author) trap() move {
	before := []string{"CreateVolume waits", "CreateVolume waits", "CreateVolume comes", "DeleteVolume waits", "DeleteVolume comes"}
	within := []string{"CreateVolume is done", "DeleteVolume is done", "patch configmaps", "patch configmaps", "create persistentvolumes"}
	place, inner := pick(a, slices.Concat(before, within)...), a.happening(false)
	if a.one(8) {
		// Nothing holds up a call that was decided on before another process leads, and is sent after it.
		place, inner = pick(a, within...), move{"another process leads", (*life).overtake}
	}
	return a.laid(place, 1+a.IntN(4), inner)
}

func (a *author) laid(place string, nth int, inner move) move {
	return move{fmt.Sprintf("when it comes to %q for the %d. time: %s", place, nth, inner.text), func(l *life) { l.lay(place, nth, func() { inner.do(l) }) }}
}

// next writes how the next process begins, and what happens before that.
func (a *author) next() (text string, prepare func(*life)) {
	bare, with := a.one(2), "the right to the record"
	if bare {
		with = "no right to the record"
	}
	aside := func(*life) {}
	if a.one(2) {
		what := a.happening(true)
		aside, text = what.do, ", before that "+what.text
	}
	return text + ", and the next has " + with, func(l *life) {
		l.h.EndNever()
		l.pass(0) // it may have ended already
		l.heal()
		l.bare, l.aside = bare, aside
	}
}

func (a *author) endNow() move {
	text, prepare := a.next()
	return move{"the process ends" + text, func(l *life) {
		prepare(l)
		l.restart()
	}}
}

func (a *author) endAt() move {
	text, prepare := a.next()
	nth, isAfter := 1+a.IntN(8), a.one(2)
	when := "before"
	if isAfter {
		when = "after"
	}
	return move{fmt.Sprintf("the process ends %s its effect %d from now%s", when, nth, text), func(l *life) {
		prepare(l)
		l.h.EndBefore(nth)
		if isAfter {
			l.h.EndAfter(nth)
		}
	}}
}

// happening writes what others do. Some of it cannot happen within a call.
func (a *author) happening(isApart bool) move {
	i, n, value := a.IntN(a.claims), a.IntN(2), pick(a, "gold", "lead")
	all := []move{
		{fmt.Sprintf("claim %d goes", i), func(l *life) { l.leave(i) }},
		{fmt.Sprintf("claim %d goes", i), func(l *life) { l.leave(i) }},
		{fmt.Sprintf("claim %d goes at once", i), func(l *life) { l.leave(i); l.release() }},
		{fmt.Sprintf("claim %d is for node n%d", i, n+1), func(l *life) { l.choose(claimKey(i), n) }},
		{"the class is of tier " + value, func(l *life) { l.tier = value; l.h.Put(l.class()) }},
		{"the right to the record comes", (*life).grant},
		{"the right to the record comes", (*life).grant},
		{"the secret goes", func(l *life) { kit.Remove[*corev1.Secret](l.h.API, secretKey) }},
		{"the caches stand still", func(l *life) { l.h.Stores.Hold() }},
	}
	if a.zones && a.one(3) {
		return all[3]
	}
	if isApart {
		all = append(all, []move{
			{fmt.Sprintf("claim %d comes", i), func(l *life) { l.come(i) }},
			{fmt.Sprintf("claim %d goes, and another comes in its place", i), func(l *life) { l.leave(i); l.release(); l.come(i) }},
			{fmt.Sprintf("claim %d goes, and another comes in its place", i), func(l *life) { l.leave(i); l.release(); l.come(i) }},
			{"what was kept for pods goes", (*life).release},
			{"the class goes", func(l *life) { kit.Remove[*storagev1.StorageClass](l.h.API, kube.Key{Name: kit.ClassName}) }},
			{"no right to the record", (*life).deny},
			{"the caches catch up", func(l *life) { l.h.Stores.Sync() }},
			{"the secret comes", func(l *life) { l.h.Put(l.newSecret()) }},
			{"the driver mends its volumes", (*life).mend},
		}...)
	} else {
		all = append(all, move{"the others work", (*life).workOn})
	}
	return pick(a, all...)
}

func (l *life) mend() {
	l.driver.small = 0
	for _, v := range l.driver.byName {
		v.isSmall = false
	}
}

// lay arranges what happens at a place: of the driver, or of the API server.
func (l *life) lay(place string, nth int, do func()) {
	var verb, resource string
	if n, _ := fmt.Sscan(place, &verb, &resource); n < 2 || verb != "patch" && verb != "create" {
		l.traps = append(l.traps, &trap{place, nth, do})
		return
	}
	l.rules = append(l.rules, l.h.API.Script(kit.Rule{Verb: verb, Resource: resource, Times: nth, Meanwhile: func() {
		if nth--; nth == 0 {
			l.isWriting = resource == "configmaps"
			do()
			l.isWriting = false
		}
	}}))
}
