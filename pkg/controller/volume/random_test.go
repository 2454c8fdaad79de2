// SPDX-License-Identifier: Apache-2.0

package volume_test

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/controller/volume"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// Thousands of lives: go test ./pkg/controller/volume -run TestRandomLives -runs 5000
// The life that failed: go test ./pkg/controller/volume -run TestRandomLives -seed 17
var (
	first = flag.Uint64("first", 0, "the first life that TestRandomLives plays")
	runs  = flag.Uint64("runs", 300, "how many random lives TestRandomLives plays")
	seed  = flag.Int64("seed", -1, "the one life that TestRandomLives plays, instead of many")
)

// TestRandomLives: people delete claims and PersistentVolumes, take volumes back, lead them to others and make second names for them, while calls
// and writes fail, answers are lost, caches are old and processes die. No volume is deleted that somebody has; once all faults are over, what was
// let go is gone, at the driver too, and who holds what is gone was told. Catches each order of events that nobody has thought of.
func TestRandomLives(t *testing.T) {
	lives := []uint64{uint64(max(*seed, 0))}
	if *seed < 0 {
		lives = nil
		for n := range *runs {
			lives = append(lives, *first+n)
		}
	}
	bad := 0
	for _, n := range lives {
		if bad == 3 {
			break
		}
		moves := write(n)
		if _, wrong := play(t, moves); wrong != "" {
			bad++
			moves = shorten(t, moves)
			l, wrong := play(t, moves)
			t.Errorf("seed %d:\n%s\nthe life, as far as it is needed:\n%s\nthe turns:\n%s", n, wrong, strings.Join(l.said, "\n"), l.Trace())
		}
	}
}

// shorten leaves out each move without which the life still ends badly.
func shorten(t *testing.T, moves []move) []move {
	for n := len(moves) + 1; n > len(moves); {
		n = len(moves)
		for i := len(moves) - 1; i >= 0; i-- {
			shorter := slices.Delete(slices.Clone(moves), i, i+1)
			if _, wrong := play(t, shorter); wrong != "" {
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

// life is a few volumes, what people do to them, and the processes that work for them one after another.
type life struct {
	*kit.Harness
	// held says that the caches stand still; kept are volumes that may stay at the driver, since somebody has said so, and unheard those
	// of whose end the process that would tell of it does not know.
	held          bool
	kept, unheard map[string]bool
	asked         map[string]bool
	claims, lag   int
	said, wrong   []string
}

func (l *life) say(format string, args ...any) { l.said = append(l.said, fmt.Sprintf(format, args...)) }

func (l *life) complain(format string, args ...any) {
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
}

// move is what happens next.
type move struct {
	text string
	do   func(*life)
}

// play lives a life to its end, and tells what was wrong with that.
func play(t *testing.T, moves []move) (l *life, wrong string) {
	q := &quiet{TB: t}
	l = &life{Harness: kit.New(q), kept: map[string]bool{}, unheard: map[string]bool{}, asked: map[string]bool{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.MaxTurns = 20_000
		l.Play(kit.Binder(l.API))
		l.Put(kit.Class(kit.ClassName))
		for _, name := range names[:2] {
			l.fill(name)
		}
		l.begin()
		for _, m := range moves {
			l.say("-- %s", m.text)
			m.do(l)
			l.step(0)
		}
		l.rest()
	}()
	<-done
	return l, strings.Join(append(q.said, l.wrong...), "\n")
}

// names are those of the volumes; the last is a second name for the first.
var names = []string{"v", "w", "twin"}

// fill makes a volume with the claim that has it.
func (l *life) fill(name string) {
	made, err := l.Driver.CreateVolume(l.Ctx, &csi.CreateVolumeRequest{Name: name, VolumeCapabilities: []*csi.VolumeCapability{{}}})
	if err != nil {
		l.T.Fatalf("%v", err)
	}
	claim := kit.Claim("of-"+name, kit.BoundTo(name))
	l.Put(claim, kit.Volume(name, kit.ClaimedBy(claim), func(v *corev1.PersistentVolume) {
		v.Spec.CSI.VolumeHandle = made.GetVolumeId()
		kube.AddFinalizer(v, wellknown.FinalizerVolume)
	}))
}

// begin starts a process.
func (l *life) begin() {
	c := volume.New(volume.Deps{
		Client: l.API, Driver: &watchful{l.Driver, l}, DriverName: kit.DriverName, Capabilities: l.Driver.Capabilities,
		Recorder: l.Recorder, Clock: l.Clock, Volumes: l.Stores.Volumes, Classes: l.Stores.StorageClasses, Attachments: l.Stores.Attachments,
		Claims: l.Stores.Claims, RetryStart: l.RetryStart, RetryMax: l.RetryMax,
	})
	l.Add(kit.Room{Name: "volume", Reconcile: c.Reconcile, Keys: kit.Feeds(kit.On(c.KeysOfVolume), kit.On(c.KeysOfAttachment))})
}

// step lets what is due happen, and a time pass.
func (l *life) step(pass time.Duration) {
	l.Horizon = pass
	l.Settle()
	if l.HasEnded() {
		l.say("-- another process")
		l.restart()
		l.Settle()
	}
}

// restart lets another process take over, which does not know what this one has asked for.
func (l *life) restart() {
	for handle := range l.asked {
		l.unheard[handle] = true
	}
	l.EndNever()
	l.Restart()
	l.held = l.lag > 0 // it has lists of its own
	l.begin()
}

// watchful is a driver that looks who has what it is to delete.
type watchful struct {
	*kit.Driver
	l *life
}

func (w *watchful) DeleteVolume(ctx context.Context, request *csi.DeleteVolumeRequest) error {
	if why := w.l.isNeeded(request.GetVolumeId()); why != "" {
		w.l.complain("volume %s is deleted: %s", request.GetVolumeId(), why)
	}
	w.l.asked[request.GetVolumeId()] = true
	err := w.Driver.DeleteVolume(ctx, request)
	w.l.say("deleting %s: %v", request.GetVolumeId(), err)
	return err
}

// isNeeded tells why a volume may not be deleted, empty when it may.
func (l *life) isNeeded(handle string) string {
	isLeft := false
	for _, v := range kit.All[*corev1.PersistentVolume](l.API) {
		if v.Spec.CSI.VolumeHandle != handle {
			continue
		}
		why := l.isHad(v)
		if why != "" && !(l.held && v.Name == "twin") { // who the others are, the cache says
			return v.Name + " " + why
		}
		isLeft = isLeft || why == ""
	}
	if !isLeft {
		return "nobody has let it go"
	}
	return ""
}

// isHad tells how a PersistentVolume has its volume still.
func (l *life) isHad(v *corev1.PersistentVolume) string {
	ref := v.Spec.ClaimRef
	switch {
	case v.Status.Phase != corev1.VolumeReleased:
		return "is " + string(v.Status.Phase)
	case v.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete:
		return "is to be retained"
	case ref == nil:
		return "has no claim that could have let it go"
	}
	for _, c := range kit.All[*corev1.PersistentVolumeClaim](l.API) {
		referred := ref.Name == c.Name && (ref.UID == c.UID || c.Spec.VolumeName == v.Name)
		// Claims that the volume does not lead to are known to the cache alone.
		if referred && (c.Spec.VolumeName == "" || c.Spec.VolumeName == v.Name) || !l.held && c.Spec.VolumeName == v.Name && c.Status.Phase == corev1.ClaimBound {
			return "is that of claim " + c.Name
		}
	}
	return ""
}

// rest lets all faults end, and looks at what there is.
func (l *life) rest() {
	l.say("-- all faults end")
	l.EndNever()
	l.sync()
	for range 2 { // what others hold on to in the last call too
		l.step(3 * time.Hour)
		for _, name := range names {
			l.edit(name, func(v *corev1.PersistentVolume) { kube.RemoveFinalizer(v, foreign) })
		}
	}
	told := strings.Join(l.Log.Lines(), "\n")
	has := map[string]bool{}
	for _, v := range kit.All[*corev1.PersistentVolume](l.API) {
		handle := v.Spec.CSI.VolumeHandle
		has[handle] = true
		isThere := slices.Contains(l.Driver.Inventory(), "volume "+strings.TrimPrefix(handle, "handle-of-"))
		switch {
		case l.isNeeded(handle) == "":
			l.complain("%s is left, with finalizers %v", v.Name, v.Finalizers)
		case !isThere && l.isHad(v) != "" && !l.unheard[handle] && !strings.Contains(told, "PersistentVolume "+v.Name+" is to stay, but the driver "):
			l.complain("%s is %s, its volume %s is not there, and nobody was told", v.Name, v.Status.Phase, handle)
		}
	}
	for _, name := range names[:2] {
		handle := kit.VolumeHandle(name)
		isKept := has[handle] || l.kept[handle] || strings.Contains(told, fmt.Sprintf("does not know volume %q", handle))
		if slices.Contains(l.Driver.Inventory(), "volume "+name) && !isKept {
			l.complain("volume %s is left at the driver", handle)
		}
	}
}

const foreign = "example.com/held"

func (l *life) edit(name string, mutate func(*corev1.PersistentVolume)) {
	kit.Edit(l.API, kube.Key{Name: name}, func(v *corev1.PersistentVolume) {
		mutate(v)
		if v.Spec.ClaimRef == nil && v.DeletionTimestamp == nil {
			v.Status.Phase = corev1.VolumeAvailable // as Kubernetes does it
		}
	})
}

func (l *life) sync() {
	l.held, l.lag = false, 0
	l.Lag(0)
	l.Stores.Sync()
}
