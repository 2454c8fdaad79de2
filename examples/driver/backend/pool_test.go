// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMeets(t *testing.T) {
	rack := Segment{"zone": "a", "rack": "1"}
	for _, tt := range []struct {
		name string
		x, y Segment
		want bool
	}{
		{"equal", zoneA, zoneA, true},
		{"one is closer", zoneA, rack, true},
		{"another value", zoneB, rack, false},
		{"another key", zoneA, Segment{"rack": "1"}, false},
		{"nowhere is everywhere", nil, rack, true},
	} {
		if got := tt.x.Meets(tt.y); got != tt.want || tt.y.Meets(tt.x) != got {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestPlacement(t *testing.T) {
	host := func(zone, n string) Segment { return Segment{"zone": zone, "host": n} }
	for _, tt := range []struct {
		name string
		r    VolumeRequest
		want Segment
		err  error
	}{
		{"the first preferred", VolumeRequest{Preferred: []Segment{zoneB, zoneA}, Requisite: []Segment{zoneA, zoneB}}, zoneB, nil},
		{"a node of the zone", VolumeRequest{Preferred: []Segment{host("b", "n")}, Requisite: []Segment{host("b", "n")}}, zoneB, nil},
		{"requisite in its order", VolumeRequest{Requisite: []Segment{zoneB, zoneA}}, zoneB, nil},
		{"preferred is full", VolumeRequest{Required: 41 * mib, Preferred: []Segment{zoneB, zoneA}}, zoneA, nil},
		{"requisite is full", VolumeRequest{Required: 41 * mib, Requisite: []Segment{zoneB}}, nil, ErrExhausted},
		{"requisite is nowhere", VolumeRequest{Requisite: []Segment{{"zone": "c"}}}, nil, ErrExhausted},
		{"no wish: most room", VolumeRequest{}, zoneA, nil},
		{"nobody has it", VolumeRequest{Required: 101 * mib}, nil, ErrExhausted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := twoZones(t.TempDir())
			o.Pools[0].Capacity++
			b := open(t, o)
			tt.r.Name = "v"
			if tt.r.Required == 0 {
				tt.r.Required = mib
			}
			v, err := b.CreateVolume(tt.r)
			wantError(t, err, tt.err)
			if err != nil {
				return
			}
			if diff := cmp.Diff(tt.want, v.Segment); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCopiesStayWithTheirSource(t *testing.T) {
	o := twoZones(t.TempDir())
	b := open(t, o)
	v := volume(t, b, VolumeRequest{Name: "v", Required: mib, Requisite: []Segment{zoneB}})
	s := snapshot(t, b, "s", v.ID)
	for name, source := range map[string]Source{"clone": {Volume: v.ID}, "restore": {Snapshot: s.ID}} {
		_, err := b.CreateVolume(VolumeRequest{Name: name, Source: source, Requisite: []Segment{zoneA}})
		wantError(t, err, ErrExhausted)
		made := volume(t, b, VolumeRequest{Name: name, Source: source, Preferred: []Segment{zoneA, zoneB}})
		if diff := cmp.Diff(zoneB, made.Segment); diff != "" {
			t.Error(diff)
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	o.CopyAcross = true
	across := volume(t, open(t, o), VolumeRequest{Name: "across", Source: Source{Volume: v.ID}, Requisite: []Segment{zoneA}})
	if diff := cmp.Diff(zoneA, across.Segment); diff != "" {
		t.Error(diff)
	}
}

func TestCapacityAccounting(t *testing.T) {
	b := open(t, twoZones(t.TempDir()))
	check := func(what string, a, maxA, z, maxB int64) {
		t.Helper()
		if diff := cmp.Diff(Capacity{a * mib, maxA * mib}, b.Capacity(Segment{"zone": "a", "host": "x"})); diff != "" {
			t.Errorf("%s: zone a: %s", what, diff)
		}
		if diff := cmp.Diff(Capacity{z * mib, maxB * mib}, b.Capacity(zoneB)); diff != "" {
			t.Errorf("%s: zone b: %s", what, diff)
		}
		if diff := cmp.Diff(Capacity{(a + z) * mib, max(maxA, maxB) * mib}, b.Capacity(nil)); diff != "" {
			t.Errorf("%s: all: %s", what, diff)
		}
	}
	check("at first", 100, 100, 100, 40)
	v := volume(t, b, VolumeRequest{Name: "v", Required: 30 * mib, Requisite: []Segment{zoneB}})
	check("with a volume", 100, 100, 70, 40)
	s := snapshot(t, b, "s", v.ID)
	check("with its snapshot", 100, 100, 40, 40)
	volume(t, b, VolumeRequest{Name: "w", Source: Source{Snapshot: s.ID}})
	check("with a restored volume", 100, 100, 10, 10)
	_, err := b.CreateSnapshot(SnapshotRequest{Name: "too much", Volume: v.ID})
	wantError(t, err, ErrExhausted)
	check("with a snapshot refused", 100, 100, 10, 10)

	// A copy that fails gives its room back.
	if err := os.RemoveAll(filepath.Join(b.options.Dir, "snapshots", s.ID, "data")); err != nil {
		t.Fatal(err)
	}
	if err := b.DeleteVolume(v.ID); err != nil {
		t.Fatal(err)
	}
	check("with a volume deleted", 100, 100, 40, 40)
	if _, err := b.CreateVolume(VolumeRequest{Name: "x", Source: Source{Snapshot: s.ID}}); err == nil {
		t.Fatal("a snapshot without data was restored")
	}
	check("with a copy failed", 100, 100, 40, 40)
	if err := b.DeleteSnapshot(s.ID); err != nil {
		t.Fatal(err)
	}
	check("with the snapshot deleted", 100, 100, 70, 40)
	if got := b.Capacity(Segment{"zone": "c"}); got != (Capacity{}) {
		t.Errorf("a zone without a pool has %+v", got)
	}
}
