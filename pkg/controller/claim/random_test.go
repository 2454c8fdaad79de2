// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// Thousands of lives: go test ./pkg/controller/claim -run TestRandomLives -runs 5000
// The life that failed: go test ./pkg/controller/claim -run TestRandomLives -seed 17
//
// Most lives are dull. Among those from the 500th on are some that end badly if a claim that goes before its turn takes an earlier request along, if
// one removal is taken for another, or if what was found on the record takes the place of what is begun.
var (
	first = flag.Uint64("first", 500, "the first life that TestRandomLives plays")
	runs  = flag.Uint64("runs", 300, "how many random lives TestRandomLives plays")
	seed  = flag.Int64("seed", -1, "the one life that TestRandomLives plays, instead of many")
)

// eventful are lives that are always played: they end badly if something is asked for before a removal, which is done late and destroys it.
var eventful = []uint64{1402, 1450}

// TestRandomLives: whatever fails, is lost, late or gone, and whenever: once that is over, each claim that is there has one volume, each volume
// at the driver has its PersistentVolume and the other way round, and nothing is open. When the claims go, nothing is left. Catches each order of
// events that nobody has thought of.
func TestRandomLives(t *testing.T) {
	lives := slices.Clone(eventful)
	for n := range *runs {
		lives = append(lives, *first+n)
	}
	if *seed >= 0 {
		lives = []uint64{uint64(*seed)}
	}
	bad := 0
	for _, n := range lives {
		if bad == 3 {
			break
		}
		s, moves := write(n)
		if _, wrong := play(t, s, moves); wrong != "" {
			bad++
			moves = shorten(t, s, moves)
			l, wrong := play(t, s, moves)
			t.Errorf("seed %d, %+v:\n%s\nthe moves, as far as they are needed:\n%s\nwhat the driver was asked:\n%s\nthe turns:\n%s",
				n, s, wrong, textOf(moves), strings.Join(l.said, "\n"), turnsOf(l))
		}
	}
}

func textOf(moves []move) string {
	var lines []string
	for _, m := range moves {
		lines = append(lines, "\t"+m.text)
	}
	return strings.Join(lines, "\n")
}

// turnsOf are the turns without those that only look at the record.
func turnsOf(l *life) string {
	turns := strings.Split(l.h.Trace(), "\n")
	return strings.Join(slices.DeleteFunc(turns, func(turn string) bool { return strings.HasSuffix(turn, " record  → again in 30s") }), "\n")
}

// shorten leaves out each move without which the life still ends badly.
func shorten(t *testing.T, s setting, moves []move) []move {
	for n := len(moves) + 1; n > len(moves); {
		n = len(moves)
		for i := len(moves) - 1; i >= 0; i-- {
			shorter := slices.Delete(slices.Clone(moves), i, i+1)
			if _, wrong := play(t, s, shorter); wrong != "" {
				moves = shorter
			}
		}
	}
	return moves
}

// quiet keeps to itself what went wrong in a life, since it may be played again.
type quiet struct {
	testing.TB
	said []string
}

func (q *quiet) Errorf(format string, args ...any) {
	q.said = append(q.said, fmt.Sprintf(format, args...))
}

func (q *quiet) Fatalf(format string, args ...any) {
	q.Errorf(format, args...)
	runtime.Goexit()
}

func (q *quiet) Fatal(args ...any) {
	q.said = append(q.said, fmt.Sprint(args...))
	runtime.Goexit()
}

// play lives a life to its end, and tells what was wrong with that.
func play(t *testing.T, s setting, moves []move) (l *life, wrong string) {
	q := &quiet{TB: t}
	l = newLife(q, s)
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.fill()
		l.begin()
		for _, m := range moves {
			l.say("-- %s", m.text)
			m.do(l)
		}
		l.rest()
	}()
	<-done
	return l, strings.Join(append(q.said, l.wrong...), "\n")
}

// rest lets all faults end and everything come to rest, with the claims and then without them.
func (l *life) rest() {
	l.say("-- all faults end")
	l.h.EndNever()
	l.pass(0) // it may have ended already
	l.bare, l.aside, l.traps = false, nil, nil
	for _, end := range l.rules {
		end()
	}
	clear(l.driver.replies)
	l.mend()
	l.h.Stores.Sync()
	l.release()
	if l.mourn {
		l.mournAll()
	}
	l.heal()
	l.h.Put(l.class(), l.newSecret())
	l.pass(3 * time.Hour)
	l.check()
	l.mournAll()
	l.pass(3 * time.Hour)
	l.check()
}

func (l *life) mournAll() {
	l.say("-- the claims go")
	for i := range l.claims {
		l.leave(i)
	}
	l.release()
}

// check compares what there is with what there should be.
func (l *life) check() {
	l.driver.catchUp()
	has := map[string]string{}
	for _, v := range kit.All[*corev1.PersistentVolume](l.h.API) {
		id := v.Spec.CSI.VolumeHandle
		if has[id] != "" {
			l.complain("%s and %s are both of volume %s", v.Name, has[id], id)
		}
		has[id] = v.Name
		if name := l.driver.names[id]; l.driver.byName[name] == nil || l.driver.byName[name].id != id {
			if !l.excused[id] {
				l.complain("%s is of volume %s, which is not there", v.Name, id)
			}
		}
		if c, ok := kit.Read[*corev1.PersistentVolumeClaim](l.h.API, kube.Key{Namespace: v.Spec.ClaimRef.Namespace, Name: v.Spec.ClaimRef.Name}); !ok || c.UID != v.Spec.ClaimRef.UID || c.Spec.VolumeName != v.Name {
			l.complain("%s is left, with finalizers %v", v.Name, v.Finalizers)
		}
	}
	for _, c := range kit.All[*corev1.PersistentVolumeClaim](l.h.API) {
		if _, ok := kit.Read[*corev1.PersistentVolume](l.h.API, kube.Key{Name: c.Spec.VolumeName}); !ok && !l.isTold() {
			l.complain("claim %s has no volume", c.Name)
		}
	}
	for name, v := range l.driver.byName {
		if has[v.id] == "" && !l.isTold() {
			l.complain("volume %s, made as %s, is left at the driver", v.id, name)
		}
	}
	if open := onRecord(l.h); len(open) > 0 && !l.isTold() {
		l.complain("on record are %v", open)
	}
}

// isTold tells that a claim waits for somebody to act: the driver has its volume in another zone, and says so.
func (l *life) isTold() bool {
	return l.strict && len(kit.All[*corev1.PersistentVolumeClaim](l.h.API)) > 0 && strings.Contains(strings.Join(l.h.Log.Lines(), "\n"), "code = AlreadyExists")
}
