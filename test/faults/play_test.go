// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/test/stage"
)

// play is a plot at work.
type play struct {
	*crew
	text   plot
	turns  map[stage.Program]*sync.Mutex
	ledger *ledger
	// patience is how long it may take until all is well.
	patience time.Duration

	mu        sync.Mutex
	forgotten map[string]bool
	problems  []string
	figures   figures
}

// figures are what is told about a run.
type figures struct {
	made, removed int
	// hits are by what struck.
	hits  map[string]int
	kills int
	// calls are those that the driver's proxies saw.
	calls int
	// took is the time with faults, and settled that until all was well and then gone.
	took, settled time.Duration
}

func (f figures) faults() int {
	sum := 0
	for what, n := range f.hits {
		if what != "killed" && what != "asked to end" {
			sum += n
		}
	}
	return sum
}

func (f figures) String() string {
	return fmt.Sprintf("faults injected %d, kills survived %d, objects created %d, deleted %d, driver calls %d, %s and %s to settle",
		f.faults(), f.kills, f.made, f.removed, f.calls, f.took.Round(time.Second), f.settled.Round(time.Second))
}

func (p *play) complain(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = append(p.problems, fmt.Sprintf(format, args...))
}

// note keeps an error that is of the test itself.
func (p *play) note(err error) {
	if err != nil {
		p.complain("the test itself: %v", err)
	}
}

// perform plays lives and blows at their times, and is back when the last life is over and no blow is in force.
func (p *play) perform(ctx context.Context) {
	begin := time.Now()
	dangers, safe := context.WithCancel(ctx)
	var lives, blows sync.WaitGroup
	for _, b := range p.text.blows {
		blows.Go(func() {
			if rest(dangers, time.Until(begin.Add(b.at))) {
				p.suffer(ctx, dangers, b)
			}
		})
	}
	for _, l := range p.text.lives {
		lives.Go(func() {
			if rest(ctx, time.Until(begin.Add(l.at))) {
				p.live(ctx, l)
			}
		})
	}
	lives.Wait()
	safe()
	blows.Wait()
	for _, program := range programs {
		p.apis[program].ReleaseAll()
		p.drivers[program].ReleaseAll()
	}
	// A driver that was killed last may not listen yet.
	p.note(await(ctx, "the driver takes its script back", pace, func() (bool, string) {
		err := p.script.Reset(ctx)
		return err == nil, fmt.Sprint(err)
	}))
	p.figures.took = time.Since(begin)
}

// suffer keeps a blow in force for its time, or until all is over.
func (p *play) suffer(ctx, dangers context.Context, b blow) {
	end, err := p.strike(ctx, b)
	if err != nil {
		p.note(fmt.Errorf("%s: %w", b, err))
		return
	}
	rest(dangers, b.lasts)
	hits := end()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.figures.hits[b.what] += hits
	if b.what == "killed" || b.what == "asked to end" {
		p.figures.kills += hits
	}
}

// live is what a user does with one object.
func (p *play) live(ctx context.Context, l life) {
	isThere, err := p.begin(ctx, l)
	if err != nil {
		p.note(fmt.Errorf("making %s: %w", l.id, err))
		return
	}
	if !isThere {
		return
	}
	p.mu.Lock()
	p.figures.made++
	p.mu.Unlock()
	if l.waits {
		p.awaitFinished(ctx, l)
	}
	if !rest(ctx, l.lingers) || l.stays {
		return
	}
	p.ledger.deleted(l.id)
	switch {
	case l.kind.isClaim():
		err = p.deleteClaim(ctx, l.id)
	case l.kind == imported:
		err = p.deleteImport(ctx, l.id)
	default:
		err = p.deleteSnapshot(ctx, l.id)
	}
	p.note(err)
	p.mu.Lock()
	p.figures.removed++
	p.mu.Unlock()
}

// begin makes the object. An import needs a volume; where there is none any more, there is no such life.
func (p *play) begin(ctx context.Context, l life) (isThere bool, err error) {
	switch l.kind {
	case plain:
		err = p.makeClaim(ctx, l.id, nil)
	case restored:
		err = p.makeClaim(ctx, l.id, fromSnapshot(l.from))
	case cloned:
		err = p.makeClaim(ctx, l.id, fromClaim(l.from))
	case cut:
		err = p.makeSnapshot(ctx, l.id, l.from)
	case imported:
		handle := p.snapshotByHand(ctx, l)
		if handle == "" {
			return false, nil
		}
		err = p.importSnapshot(ctx, l.id, handle)
	}
	return err == nil, err
}

// snapshotByHand takes a snapshot at the driver that nobody else knows of, while the driver has its faults as well. If it cannot
// be had, it is taken back by hand, too.
func (p *play) snapshotByHand(ctx context.Context, l life) string {
	ctx, cancel := context.WithTimeout(ctx, 6*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		claim, err := p.kube.CoreV1().PersistentVolumeClaims(p.ns).Get(ctx, l.from, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			break
		}
		if err == nil && claim.Spec.VolumeName != "" {
			if handle := p.tryByHand(ctx, l.id, claim.Spec.VolumeName); handle != "" {
				return handle
			}
		}
		rest(ctx, 300*time.Millisecond)
	}
	p.ledger.disown(l.id)
	return ""
}

func (p *play) tryByHand(ctx context.Context, name, volume string) string {
	pv, err := p.kube.CoreV1().PersistentVolumes().Get(ctx, volume, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	id, err := p.cast.MakeSnapshot(ctx, name, pv.Spec.CSI.VolumeHandle)
	if err != nil || id == "" {
		return ""
	}
	return id
}

// awaitFinished waits for some seconds: what is not finished by then is left in the middle of it.
func (p *play) awaitFinished(ctx context.Context, l life) {
	ctx, cancel := context.WithTimeout(ctx, 4*time.Second)
	defer cancel()
	for {
		isFinished := false
		if l.kind.isClaim() {
			claim, err := p.kube.CoreV1().PersistentVolumeClaims(p.ns).Get(ctx, l.id, metav1.GetOptions{})
			isFinished = err == nil && claim.Status.Phase == "Bound"
		} else {
			snapshot, err := p.snaps.VolumeSnapshots(p.ns).Get(ctx, l.id, metav1.GetOptions{})
			isFinished = err == nil && snapshot.Status != nil && ptr.Deref(snapshot.Status.ReadyToUse, false)
		}
		if isFinished || !rest(ctx, 200*time.Millisecond) {
			return
		}
	}
}

// plainly names the lives in a text that speaks of them by their UIDs.
func (p *play) plainly(text string) string {
	for uid, name := range p.ledger.names() {
		text = strings.ReplaceAll(text, uid, uid+"("+name+")")
	}
	return text
}
