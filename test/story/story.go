// SPDX-License-Identifier: Apache-2.0

// Package story plays what users are taught with the manifests in examples/: snapshot and restore, topology, a topology
// key of one's own, local volumes. It is what `make demo` shows, and what the end-to-end tests play while they kill the
// sidecars.
//
// It owns the order of the steps, what is shown at each, and what has to be true after it. Data is checked by content,
// through the paths at which the driver publishes volumes.
//
// It must not know how the control plane, the driver and the sidecars are started, nor which of them is killed.
//
// It stands outside the walks, above the stage.
package story

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/csi-tandem/csi-tandem/test/stage"
)

// exampleDriver is the name of the driver in the manifests.
const exampleDriver = "tandem.csi.example"

// Scene is what the story is played on.
type Scene struct {
	Stage *stage.Stage
	Cast  *stage.Cast
	Out   *Narrator
	// Patience is how long one thing is waited for.
	Patience time.Duration

	facts   []string
	skipped []string
	// content is what was written into the first volume.
	content string
	// handle is the id that the driver gave to the snapshot.
	handle string
	// before are the ids of what the driver stored when the story began; none of it is ours.
	before []string
	// warned are the warnings that were shown.
	warned map[string]bool
}

// Facts are what was found at each step, without anything that differs from run to run. Two runs that ended alike have
// the same facts.
func (s *Scene) Facts() []string { return slices.Clone(s.facts) }

// Skipped names the steps that were left out, each with the reason.
func (s *Scene) Skipped() []string { return slices.Clone(s.skipped) }

// StepError says at which step the story failed.
type StepError struct {
	Step string
	Err  error
}

func (e *StepError) Error() string { return fmt.Sprintf("step %s: %v", e.Step, e.Err) }

// Unwrap gives the cause.
func (e *StepError) Unwrap() error { return e.Err }

// act is a part of the story that begins and ends with nothing in the cluster.
type act struct {
	title string
	says  string
	steps []step
}

// step is something that is done, shown and checked. It is left out if the driver lacks what it needs.
type step struct {
	title string
	needs need
	play  func(ctx context.Context, s *Scene) error
}

// need names what a step asks of the driver, and how to find out whether that is there.
type need struct {
	what string
	met  func(s *Scene) bool
}

// feature is a need for a capability of the CSI specification.
func feature(name string) need {
	return need{what: name, met: func(s *Scene) bool { return s.Cast.Info.Can(name) }}
}

// Play plays all acts and stops at the first step that fails, with a StepError.
func Play(ctx context.Context, s *Scene) error {
	stored, err := s.stored(ctx)
	if err != nil {
		return &StepError{Step: "0", Err: err}
	}
	s.before = stored
	for number, a := range s.acts() {
		s.Out.act(number+1, a.title, a.says)
		for i, st := range a.steps {
			name := fmt.Sprintf("%d.%d %q", number+1, i+1, st.title)
			s.Out.step(fmt.Sprintf("%d.%d", number+1, i+1), st.title)
			if st.needs.met != nil && !st.needs.met(s) {
				reason := "the driver has no " + st.needs.what
				s.Out.skip(reason)
				s.skipped = append(s.skipped, name+": "+reason)
				continue
			}
			if err := st.play(ctx, s); err != nil {
				return &StepError{Step: name, Err: errors.Join(err, context.Cause(ctx))}
			}
		}
	}
	return nil
}

// Steps counts the steps of the whole story.
func (s *Scene) Steps() int {
	count := 0
	for _, a := range s.acts() {
		count += len(a.steps)
	}
	return count
}

// acts are one more where nodes are real.
func (s *Scene) acts() []act {
	all := []act{snapshotAct(), zoneAct(), rackAct(), localAct()}
	if s.Stage.Machine != nil {
		all = append(all, zonesAct())
	}
	return all
}

// fact writes down what was found. Names that the API server or the driver make up do not belong here.
func (s *Scene) fact(format string, values ...any) {
	s.facts = append(s.facts, fmt.Sprintf(format, values...))
}

// stored lists all that the driver tells about what it stores.
func (s *Scene) stored(ctx context.Context) ([]string, error) {
	volumes, _, err := s.Cast.Volumes(ctx)
	if err != nil {
		return nil, err
	}
	snapshots, _, err := s.Cast.StoredSnapshots(ctx)
	if err != nil {
		return nil, err
	}
	return slices.Concat(volumes, snapshots), nil
}

// leftAtDriver is what the driver stores more than when the story began.
func (s *Scene) leftAtDriver(ctx context.Context) ([]string, error) {
	stored, err := s.stored(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(stored, func(id string) bool { return slices.Contains(s.before, id) }), nil
}

// adapt makes an example fit another driver.
func (s *Scene) adapt(manifest []byte) (adapted []byte, changes string) {
	var segments map[string]string
	if s.Cast.Info.HasTopology() {
		segments = s.Cast.Info.Segments
	}
	text := fit(string(manifest), s.Cast.Info.Name, segments)
	if text == string(manifest) {
		return manifest, ""
	}
	return []byte(text), "made to fit " + s.Cast.Info.Name
}

// fit puts in the name of the driver, and its values of the topology keys that the examples speak of.
func fit(manifest, name string, segments map[string]string) string {
	pairs := []string{exampleDriver, name}
	for _, of := range []struct{ key, right, wrong string }{{zoneKey, zoneRight, zoneWrong}, {rackKey, rackRight, rackWrong}} {
		if value, ok := segments[of.key]; ok && value != of.right {
			pairs = append(pairs, of.right, value, of.wrong, value+"-elsewhere")
		}
	}
	return strings.NewReplacer(pairs...).Replace(manifest)
}
