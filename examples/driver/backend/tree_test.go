// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A pod can nest directories as deep as it likes. Each level of a walk costs descriptors, of which the driver has so many.
func TestWalkHasABottom(t *testing.T) {
	b := open(t, twoZones(t.TempDir()))
	v := volume(t, b, VolumeRequest{Name: "v", Required: mib})
	dir, err := unix.Open(data(t, b, v.ID), unix.O_PATH|unix.O_DIRECTORY, 0)
	must(t, err)
	for range maximumDepth + 10 {
		must(t, unix.Mkdirat(dir, "d", 0o755))
		next, err := unix.Openat(dir, "d", unix.O_PATH|unix.O_DIRECTORY, 0)
		must(t, err)
		must(t, unix.Close(dir))
		dir = next
	}
	must(t, unix.Close(dir))
	_, err = b.CreateSnapshot(SnapshotRequest{Name: "s", Volume: v.ID})
	wantError(t, err, ErrInvalid)
	_, err = b.Usage(v.ID)
	wantError(t, err, ErrInvalid)
	must(t, b.DeleteVolume(v.ID))
}

// A copy must end although the original grows as fast as it is read: it has the size of the beginning.
func TestCopyEndsAtTheFirstSize(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "in"), make([]byte, 10000), 0o600))
	in, err := os.Open(filepath.Join(dir, "in"))
	must(t, err)
	defer in.Close()
	for _, size := range []int64{0, 1, 5000, 10000, 20000} {
		out, err := os.Create(filepath.Join(dir, fmt.Sprint("out", size)))
		must(t, err)
		must(t, copyExtents(in, out, size))
		info, err := out.Stat()
		must(t, err)
		if want := min(size, 10000); info.Size() != want {
			t.Errorf("%d bytes, want %d", info.Size(), want)
		}
		must(t, out.Close())
	}
}

func TestLongLinkIsCopiedWhole(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
	must(t, os.Mkdir(from, 0o755))
	long := ""
	for len(long) < 1000 {
		long += "/elsewhere"
	}
	must(t, os.Symlink(long, filepath.Join(from, "link")))
	must(t, copyTree(from, to))
	if got, err := os.Readlink(filepath.Join(to, "link")); err != nil || got != long {
		t.Errorf("the link leads to %q, %v", got, err)
	}
}

// A device has whole sectors only, so a block volume of another size would be smaller than it says.
func TestBlockSizesAreWholeSectors(t *testing.T) {
	o := twoZones(t.TempDir())
	o.Pools[0].Capacity = math.MaxInt64
	b := open(t, o)
	for i, tt := range []struct {
		required, limit int64
		block           bool
		want            int64
		fails           error
	}{
		{required: 1, block: true, want: 512},
		{required: 512, limit: 512, block: true, want: 512},
		{required: 1000_000, block: true, want: 1000_448},
		{required: 1000_000, limit: 1000_447, block: true, fails: ErrRange},
		{limit: 1000, block: true, want: 512},
		{limit: 100, block: true, fails: ErrRange},
		{required: math.MaxInt64 - 1, block: true, fails: ErrRange},
		{required: 1000_000, want: 1000_000},
		{limit: 1000, want: 1000},
	} {
		v, err := b.CreateVolume(VolumeRequest{Name: fmt.Sprint("v", i), Required: tt.required, Limit: tt.limit, Block: tt.block})
		if tt.fails != nil {
			wantError(t, err, tt.fails)
			continue
		}
		must(t, err)
		if v.Size != tt.want {
			t.Errorf("%+v: got %d bytes", tt, v.Size)
		}
		// A repeat finds the volume, rounded as it is.
		if again := volume(t, b, VolumeRequest{Name: v.Name, Required: tt.required, Limit: tt.limit, Block: tt.block}); again.ID != v.ID {
			t.Errorf("%+v: the repeat made another volume", tt)
		}
	}
}
