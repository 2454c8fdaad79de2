// SPDX-License-Identifier: Apache-2.0

package attempt_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/attempt"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// loose is an API that loses requests and answers, lets writes arrive at any time later, and something else happen before any of them.
type loose struct {
	*kit.API
	chance func(in int) bool
	// pending are the writes on their way.
	pending   []func() error
	meanwhile func()
}

func (l *loose) Fetch(ctx context.Context, r kube.Resource, key kube.Key, into kube.Object) error {
	if l.chance(10) {
		l.meanwhile()
	}
	if l.chance(15) {
		return late
	}
	return l.API.Fetch(ctx, r, key, into)
}

func (l *loose) Create(ctx context.Context, r kube.Resource, obj, into kube.Object) error {
	return l.write(into, func(into kube.Object) error { return l.API.Create(ctx, r, obj, into) })
}

func (l *loose) Patch(ctx context.Context, r kube.Resource, key kube.Key, body kube.PatchBody, into kube.Object) error {
	return l.write(into, func(into kube.Object) error { return l.API.Patch(ctx, r, key, body, into) })
}

func (l *loose) write(into kube.Object, do func(kube.Object) error) error {
	if l.chance(8) {
		l.meanwhile()
	}
	switch {
	case l.chance(6):
		l.pending = append(l.pending, func() error { return do(&corev1.ConfigMap{}) })
		return late
	case l.chance(6):
		_ = do(into)
		return late
	}
	return do(into)
}

// succession is a row of processes, of which those that were overtaken go on writing. leader is the last one, and the model is what it may rely on.
type succession struct {
	*kit.Harness
	t         *testing.T
	random    *rand.Rand
	api       *loose
	overtaken []*process
	leader    *process
	// open must be found by the next process: the bodies by claim, any of which will do. over must not be.
	open map[types.UID][]string
	over map[types.UID]bool
	told []string
	puts int
	// busy: nothing is lost, and nothing else happens. begins: another process takes over from the leader.
	busy, begins bool
}

var claims = []types.UID{"u1", "u2", "u3", "u4"}

func (s *succession) one() types.UID { return claims[s.random.IntN(len(claims))] }

func (s *succession) chance(in int) bool { return !s.busy && s.random.IntN(in) == 0 }

func (s *succession) say(format string, args ...any) {
	s.told = append(s.told, fmt.Sprintf(format, args...))
}

func (s *succession) document() attempt.Document {
	s.puts++
	return text(fmt.Sprint("n", s.puts, ",", strings.Repeat("x", 60)))
}

// meanwhile is what others do at any moment.
func (s *succession) meanwhile() {
	s.busy = true
	defer func() { s.busy = false }()
	if n := len(s.api.pending); n > 0 && s.random.IntN(2) == 0 {
		i := s.random.IntN(n)
		arrives := s.api.pending[i]
		s.api.pending = slices.Delete(s.api.pending, i, i+1)
		s.say("    a write arrives: %v", arrives())
		return
	}
	if s.begins && s.random.IntN(2) == 0 {
		s.do() // the one before does not know yet
		return
	}
	if n := len(s.overtaken); n > 0 {
		p, uid := s.overtaken[s.random.IntN(n)], s.one()
		err := p.Put(s.Ctx, uid, s.document())
		s.say("    one that was overtaken puts %s as n%d: %v", uid, s.puts, err)
		if err == nil {
			s.t.Error("two write")
		}
	}
}

func (s *succession) succeed() {
	p := newProcess(s.Harness, fmt.Sprint("p", len(s.overtaken)), smallObjects, func(o *attempt.Options) { o.Client = s.api })
	s.begins = s.leader != nil
	for try := 0; ; try++ {
		err := p.Begin(s.Ctx)
		if err == nil {
			break
		}
		if try > 100 {
			s.t.Fatal("it never begins:", err)
		}
	}
	s.begins = false
	s.say("the next begins, and finds %v", short(p.found))
	found := map[types.UID]string{}
	for _, line := range p.found {
		uid, body, _ := strings.Cut(line, "=")
		if found[types.UID(uid)] != "" {
			s.t.Error("found twice:", uid)
		}
		found[types.UID(uid)], _, _ = strings.Cut(body, ",")
	}
	for uid, bodies := range s.open {
		if !slices.Contains(bodies, found[uid]) {
			s.t.Errorf("of %s one of %v was acknowledged, and %q is found", uid, bodies, found[uid])
		}
	}
	for uid := range s.over {
		if found[uid] != "" {
			s.t.Errorf("%s was settled, and is found", uid)
		}
	}
	if s.leader != nil {
		s.overtaken = append(s.overtaken, s.leader)
	}
	s.leader, s.open = p, map[types.UID][]string{}
	for uid, body := range found {
		s.open[uid] = []string{body}
	}
}

func short(lines []string) (cut []string) {
	for _, line := range lines {
		line, _, _ = strings.Cut(line, ",")
		cut = append(cut, line)
	}
	return cut
}

// work is what the leader does, and do what it does at any moment.
func (s *succession) work() {
	if s.random.IntN(7) == 0 {
		s.meanwhile()
	} else {
		s.do()
	}
	if err := s.leader.Check(); err != nil {
		s.t.Fatal("the last one ends:", err)
	}
	if _, parked := s.leader.Len(); parked > 0 {
		s.t.Error("something is taken for put there by hand")
	}
}

func (s *succession) do() {
	uid := s.one()
	switch s.random.IntN(6) {
	case 0, 1, 2:
		d := s.document()
		err := s.leader.Put(s.Ctx, uid, d)
		body, _, _ := strings.Cut(d.Body, ",")
		s.say("puts %s as %s: %v", uid, body, err)
		delete(s.over, uid)
		if err == nil {
			s.open[uid] = []string{body}
		} else if s.open[uid] != nil {
			s.open[uid] = append(s.open[uid], body)
		}
	case 3:
		s.leader.Remove(uid)
		s.say("removes %s", uid)
		delete(s.open, uid)
	case 4:
		delete(s.open, uid)
		err := s.leader.Settle(s.Ctx, uid)
		s.say("settles %s: %v", uid, err)
		if err == nil {
			s.over[uid] = true
		}
	case 5:
		s.say("sweeps: %v", s.leader.Sweep(s.Ctx))
	}
}

// tidy looks at what is left once nothing is on its way and every request is answered.
func (s *succession) tidy() {
	for len(s.api.pending) > 0 {
		s.busy = true
		_ = s.api.pending[0]()
		s.busy = false
		s.api.pending = s.api.pending[1:]
	}
	s.busy = true
	defer func() { s.busy = false }()
	for _, uid := range claims {
		if s.open[uid] == nil {
			s.leader.Remove(uid)
		}
	}
	if s.leader.Put(s.Ctx, "last", text("x")) != nil || s.leader.Settle(s.Ctx, "last") != nil {
		s.t.Error("the record does not get well")
	}
	left := map[string]bool{}
	for _, object := range kit.All[*corev1.ConfigMap](s.API) {
		for key := range object.Data {
			left[key] = true
		}
	}
	want := map[string]bool{"epoch": true}
	for uid := range s.open {
		want[string(uid)] = true
	}
	if !maps.Equal(left, want) {
		s.t.Errorf("on record are %v, want %v", left, want)
	}
}

// TestRandomSuccession: processes follow upon each other at any moment, while those before them write, requests and answers are lost, and writes arrive
// late. What was acknowledged is found, what was settled is not, of two only the last one writes and never ends, nothing is taken for the doing of a
// person, and nothing is left that is over. Catches a record whose guards hold in the orders only that somebody has thought of.
func TestRandomSuccession(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := &succession{Harness: kit.New(t), t: t, random: rand.New(rand.NewPCG(seed, 1)), open: map[types.UID][]string{}, over: map[types.UID]bool{}}
			s.api = &loose{API: s.API, chance: s.chance, meanwhile: s.meanwhile}
			s.succeed()
			for range 40 {
				if s.random.IntN(8) == 0 {
					s.succeed()
				} else {
					s.work()
				}
				if t.Failed() {
					t.Fatalf("seed %d:\n%s", seed, strings.Join(s.told, "\n"))
				}
			}
			s.tidy()
			if t.Failed() {
				t.Fatalf("seed %d:\n%s", seed, strings.Join(s.told, "\n"))
			}
		})
	}
}
