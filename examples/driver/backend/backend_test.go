// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const mib = int64(1) << 20

var (
	zoneA = Segment{"zone": "a"}
	zoneB = Segment{"zone": "b"}
)

// stepping is a clock that moves by itself, so that ids never repeat.
type stepping struct{ at time.Time }

func (c *stepping) now() time.Time {
	c.at = c.at.Add(time.Millisecond)
	return c.at
}

func twoZones(dir string) Options {
	clock := &stepping{at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	return Options{Dir: dir, Now: clock.now, Pools: []Pool{
		{Segment: zoneA, Capacity: 100 * mib},
		{Segment: zoneB, Capacity: 100 * mib, MaximumVolumeSize: 40 * mib},
	}}
}

func open(t *testing.T, o Options) *Backend {
	t.Helper()
	b, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func volume(t *testing.T, b *Backend, r VolumeRequest) Volume {
	t.Helper()
	v, err := b.CreateVolume(r)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func snapshot(t *testing.T, b *Backend, name, of string) Snapshot {
	t.Helper()
	s, err := b.CreateSnapshot(SnapshotRequest{Name: name, Volume: of})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
}

func TestStateSurvivesAnotherStart(t *testing.T) {
	o := twoZones(t.TempDir())
	o.Sync = true
	b := open(t, o)
	v := volume(t, b, VolumeRequest{
		Name: "v", Required: mib, Parameters: map[string]string{"p": "q"}, Mutable: map[string]string{"tier": "gold"},
		Requisite: []Segment{zoneB},
	})
	if err := b.BeginUse(v.ID, Use{Path: "/x", ReadOnly: true}); err != nil {
		t.Fatal(err)
	}
	if err := b.ModifyVolume(v.ID, map[string]string{"iops": "5"}); err != nil {
		t.Fatal(err)
	}
	s := snapshot(t, b, "s", v.ID)
	clone := volume(t, b, VolumeRequest{Name: "c", Source: Source{Snapshot: s.ID}})
	volumes, snapshots, room := b.Volumes(), b.Snapshots(), b.Capacity(nil)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}

	again := open(t, o)
	if diff := cmp.Diff(volumes, again.Volumes()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(snapshots, again.Snapshots()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(room, again.Capacity(nil)); diff != "" {
		t.Error(diff)
	}
	found := volume(t, again, VolumeRequest{Name: "c", Source: Source{Snapshot: s.ID}})
	if found.ID != clone.ID || found.Source != clone.Source {
		t.Errorf("the same request found %+v instead of %+v", found, clone)
	}
}

func TestHalfMadeObjectsAreGoneAfterStart(t *testing.T) {
	o := twoZones(t.TempDir())
	b := open(t, o)
	v := volume(t, b, VolumeRequest{Name: "v", Required: mib})
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	// What a kill leaves: a creation before its rename, a deletion after it.
	for _, dir := range []string{"tmp/vol-x/data", "trash/vol-y/data"} {
		if err := os.MkdirAll(filepath.Join(o.Dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	// And a change of a record before its rename.
	if err := os.WriteFile(filepath.Join(o.Dir, "volumes", v.ID, "record.json.new"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	again := open(t, o)
	if got := len(again.Volumes()); got != 1 {
		t.Errorf("%d volumes, want 1", got)
	}
	for _, dir := range []string{"tmp", "trash"} {
		if left, err := os.ReadDir(filepath.Join(o.Dir, dir)); err != nil || len(left) > 0 {
			t.Errorf("%s has %v (%v)", dir, left, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Run("a folder that another process has", func(t *testing.T) {
		o := twoZones(t.TempDir())
		open(t, o)
		if _, err := Open(o); err == nil {
			t.Error("the folder was opened twice")
		}
	})
	t.Run("a record that cannot be read", func(t *testing.T) {
		o := twoZones(t.TempDir())
		b := open(t, o)
		v := volume(t, b, VolumeRequest{Name: "v", Required: mib})
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(o.Dir, "volumes", v.ID, "record.json"), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(o); err == nil {
			t.Error("a damaged record was ignored, its name would be free again")
		}
	})
	t.Run("no clock", func(t *testing.T) {
		_, err := Open(Options{Dir: t.TempDir()})
		wantError(t, err, ErrInvalid)
	})
}

func TestUses(t *testing.T) {
	b := open(t, twoZones(t.TempDir()))
	v := volume(t, b, VolumeRequest{Name: "v", Required: mib})
	for _, step := range []struct {
		name string
		use  Use
		want error
	}{
		{"staged", Use{Path: "/stage", Staging: true}, nil},
		{"published", Use{Path: "/a", Exclusive: true}, nil},
		{"published again", Use{Path: "/a", Exclusive: true}, nil},
		{"published in another way", Use{Path: "/a", ReadOnly: true}, ErrConflict},
		{"published for a second time", Use{Path: "/b"}, ErrInUse},
	} {
		if err := b.BeginUse(v.ID, step.use); !errors.Is(err, step.want) {
			t.Fatalf("%s: got %v, want %v", step.name, err, step.want)
		}
	}
	wantError(t, b.DeleteVolume(v.ID), ErrInUse)
	for _, path := range []string{"/a", "/a", "/stage", "/never"} {
		if err := b.EndUse(v.ID, path); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.DeleteVolume(v.ID); err != nil {
		t.Fatal(err)
	}
	if err := b.EndUse(v.ID, "/a"); err != nil {
		t.Errorf("ending the use of a volume that is gone: %v", err)
	}
	wantError(t, b.BeginUse(v.ID, Use{Path: "/a"}), ErrNotFound)
}
