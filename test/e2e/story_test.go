// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
	"github.com/csi-tandem/csi-tandem/test/stage"
	"github.com/csi-tandem/csi-tandem/test/story"
)

// seedVariable repeats the random moments of a run.
const seedVariable = "CSI_TANDEM_SEED"

const slowness = 250 * time.Millisecond

// TestStory plays what the demo plays: left alone, and with both sidecars killed again and again at random moments. The
// facts at the end are the same.
func TestStory(t *testing.T) {
	t.Parallel()
	s := theStage(t)
	cast, err := s.NewCast(t.Context(), stage.Roles{Topology: story.Topology(story.OneZone)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cast.Close(); err != nil {
			t.Error(err)
		}
	})
	var sidecars []*stage.Process
	for _, program := range []stage.Program{stage.Provisioner, stage.Snapshotter} {
		p, err := cast.StartSidecar(program)
		if err != nil {
			t.Fatal(err)
		}
		sidecars = append(sidecars, p)
	}
	// One after the other: the examples have fixed names.
	t.Run("left alone", func(t *testing.T) { play(t, cast, nil) })
	t.Run("the provisioner is killed", func(t *testing.T) { play(t, cast, sidecars[:1]) })
	t.Run("the snapshotter is killed", func(t *testing.T) { play(t, cast, sidecars[1:]) })
	t.Run("both are killed", func(t *testing.T) { play(t, cast, sidecars) })
	for _, p := range cast.Processes() {
		for _, death := range p.Deaths() {
			t.Error(death)
		}
	}
}

func play(t *testing.T, cast *stage.Cast, victims []*stage.Process) {
	var told bytes.Buffer
	scene := &story.Scene{Stage: shared.stage, Cast: cast, Out: story.NewNarrator(&told), Patience: patience}
	if len(victims) > 0 {
		// A driver that takes its time is one that is at work when its caller is killed.
		rule, err := cast.Control.Lag(t.Context(), control.On(""), slowness)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := cast.Control.Release(t.Context(), rule); err != nil {
				t.Error(err)
			}
		}()
	}
	seed := seedOf(t)
	chaos := stage.StartChaos(t.Context(), seed, victims...)
	err := story.Play(t.Context(), scene)
	kills, chaosErr := chaos.Stop()
	t.Logf("kills %v, %s=%d", kills, seedVariable, seed)
	if err != nil || chaosErr != nil {
		for _, p := range cast.Processes() {
			t.Logf("the end of %s:\n%s", p.Log, p.LogTail(15))
		}
		t.Fatalf("%s\n%v %v", told.String(), err, chaosErr)
	}
	if skipped := scene.Skipped(); len(skipped) > 0 {
		t.Errorf("skipped with a driver that can do everything: %q", skipped)
	}
	got := strings.Join(scene.Facts(), "\n") + "\n"
	file := filepath.Join("testdata", "story.txt")
	if os.Getenv(updateVariable) != "" && len(victims) == 0 {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the facts are not as in %s (-want +got):\n%s", file, diff)
	}
}

func seedOf(t *testing.T) uint64 {
	t.Helper()
	given := os.Getenv(seedVariable)
	if given == "" {
		return uint64(time.Now().UnixNano())
	}
	seed, err := parseSeed(given)
	if err != nil {
		t.Fatal(err)
	}
	return seed
}
