// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"strings"
	"testing"
	"time"
)

func TestCreateVolumeIsIdempotentByName(t *testing.T) {
	b := open(t, twoZones(t.TempDir()))
	request := func(edit func(*VolumeRequest)) VolumeRequest {
		r := VolumeRequest{
			Name: "v", Required: 10 * mib, Parameters: map[string]string{"k": "v"},
			Requisite: []Segment{zoneA, zoneB}, Preferred: []Segment{zoneA, zoneB},
		}
		edit(&r)
		return r
	}
	first := volume(t, b, request(func(*VolumeRequest) {}))
	if strings.Contains(first.ID, "v-v") || len(first.ID) < 20 {
		t.Errorf("the id %q can be guessed", first.ID)
	}
	for _, tt := range []struct {
		name string
		edit func(*VolumeRequest)
		want error
	}{
		{"the same", func(*VolumeRequest) {}, nil},
		{"other order of preference", func(r *VolumeRequest) { r.Preferred = []Segment{zoneB, zoneA} }, nil},
		{"less is asked for", func(r *VolumeRequest) { r.Required = 5 * mib }, nil},
		{"other mutable parameters", func(r *VolumeRequest) { r.Mutable = map[string]string{"tier": "gold"} }, nil},
		{"more is asked for", func(r *VolumeRequest) { r.Required = 11 * mib }, ErrConflict},
		{"a lower limit", func(r *VolumeRequest) { r.Required, r.Limit = mib, 9*mib }, ErrConflict},
		{"block access", func(r *VolumeRequest) { r.Block = true }, ErrConflict},
		{"other parameters", func(r *VolumeRequest) { r.Parameters = nil }, ErrConflict},
		{"another source", func(r *VolumeRequest) { r.Source = Source{Volume: first.ID} }, ErrConflict},
		{"another place", func(r *VolumeRequest) { r.Requisite = []Segment{zoneB} }, ErrConflict},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := b.CreateVolume(request(tt.edit))
			wantError(t, err, tt.want)
			if err == nil && v.ID != first.ID {
				t.Errorf("a second volume %s beside %s", v.ID, first.ID)
			}
		})
	}
	if got := b.Capacity(zoneA).Available; got != 90*mib {
		t.Errorf("%d bytes are free, want %d", got, 90*mib)
	}
}

func TestDeletedNameMakesAnotherVolume(t *testing.T) {
	b := open(t, twoZones(t.TempDir()))
	r := VolumeRequest{Name: "v", Required: mib}
	first := volume(t, b, r)
	for range 2 {
		if err := b.DeleteVolume(first.ID); err != nil {
			t.Fatal(err)
		}
	}
	if second := volume(t, b, r); second.ID == first.ID {
		t.Error("the id came back with the name")
	}
}

func TestSizes(t *testing.T) {
	o := twoZones(t.TempDir())
	o.MinimumSize = 2 * mib
	o.Pools[0].Capacity = 10 << 30
	b := open(t, o)
	source := volume(t, b, VolumeRequest{Name: "source", Required: 8 * mib})
	from := Source{Volume: source.ID}
	for _, tt := range []struct {
		name string
		r    VolumeRequest
		size int64
		want error
	}{
		{"as asked", VolumeRequest{Required: 3 * mib}, 3 * mib, nil},
		{"raised to the minimum", VolumeRequest{Required: 1}, 2 * mib, nil},
		{"the default", VolumeRequest{}, DefaultVolumeSize, nil},
		{"the default within a limit", VolumeRequest{Limit: 5 * mib}, 5 * mib, nil},
		{"that of the source", VolumeRequest{Source: from}, 8 * mib, nil},
		{"larger than the source", VolumeRequest{Source: from, Required: 9 * mib}, 9 * mib, nil},
		{"smaller than the source", VolumeRequest{Source: from, Required: 7 * mib}, 0, ErrRange},
		{"limit below the source", VolumeRequest{Source: from, Limit: 7 * mib}, 0, ErrRange},
		{"limit below the minimum", VolumeRequest{Limit: mib}, 0, ErrRange},
		{"limit below what is required", VolumeRequest{Required: 4 * mib, Limit: 3 * mib}, 0, ErrRange},
		{"negative", VolumeRequest{Required: -1}, 0, ErrRange},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.r.Name = tt.name
			v, err := b.CreateVolume(tt.r)
			wantError(t, err, tt.want)
			if err == nil && v.Size != tt.size {
				t.Errorf("%d bytes, want %d", v.Size, tt.size)
			}
		})
	}
}

func TestSourcesThatCannotBeUsed(t *testing.T) {
	o := twoZones(t.TempDir())
	o.SnapshotReadyAfter = time.Minute
	b := open(t, o)
	block := volume(t, b, VolumeRequest{Name: "block", Required: mib, Block: true})
	unready := snapshot(t, b, "unready", block.ID)
	for _, tt := range []struct {
		name   string
		source Source
		want   error
	}{
		{"no such snapshot", Source{Snapshot: "nope"}, ErrNotFound},
		{"no such volume", Source{Volume: "nope"}, ErrNotFound},
		{"not ready", Source{Snapshot: unready.ID}, ErrNotReady},
		{"block into mount", Source{Volume: block.ID}, ErrInvalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := b.CreateVolume(VolumeRequest{Name: tt.name, Source: tt.source})
			wantError(t, err, tt.want)
		})
	}
	if got := len(b.Volumes()); got != 1 {
		t.Errorf("%d volumes, want 1", got)
	}
}

func TestOpenOperationsHoldOthersOff(t *testing.T) {
	b := open(t, twoZones(t.TempDir()))
	v := volume(t, b, VolumeRequest{Name: "v", Required: mib})
	s := snapshot(t, b, "s", v.ID)

	b.mu.Lock()
	unpinVolume, unpinSnapshot := b.pin(v.ID), b.pin(s.ID)
	b.mu.Unlock()
	wantError(t, b.DeleteVolume(v.ID), ErrBusy)
	wantError(t, b.DeleteSnapshot(s.ID), ErrBusy)
	unpinVolume()
	unpinSnapshot()

	for _, object := range []struct{ kind, name string }{{"volume", "v"}, {"snapshot", "s"}} {
		done, err := b.begin(object.kind, object.name)
		if err != nil {
			t.Fatal(err)
		}
		defer done()
	}
	_, err := b.CreateVolume(VolumeRequest{Name: "v", Required: mib})
	wantError(t, err, ErrBusy)
	_, err = b.CreateSnapshot(SnapshotRequest{Name: "s", Volume: v.ID})
	wantError(t, err, ErrBusy)
	wantError(t, b.DeleteVolume(v.ID), ErrBusy)
	wantError(t, b.DeleteSnapshot(s.ID), ErrBusy)
	if len(b.Volumes()) != 1 || len(b.Snapshots()) != 1 {
		t.Error("something was deleted while an operation was open")
	}
}

func TestForget(t *testing.T) {
	b := open(t, twoZones(t.TempDir()))
	v := volume(t, b, VolumeRequest{Name: "v", Required: mib})
	s := snapshot(t, b, "s", v.ID)
	if err := b.BeginUse(v.ID, Use{Path: "/x"}); err != nil {
		t.Fatal(err)
	}
	wantError(t, b.Forget("nope"), ErrNotFound)
	for _, object := range []string{"v", s.ID} {
		if err := b.Forget(object); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.Volumes()) != 0 || len(b.Snapshots()) != 0 {
		t.Error("not everything was forgotten")
	}
}
