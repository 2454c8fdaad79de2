// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func found(t *testing.T, path string) map[string]Access {
	t.Helper()
	all := map[string]Access{}
	must(t, each(path, func(s showing) error {
		all[s.name] = s.access()
		return nil
	}))
	return all
}

// image is a file for a device, which is freed with the test.
func image(t *testing.T) string {
	t.Helper()
	if err := Probe(); err != nil {
		t.Skip(err)
	}
	path := filepath.Join(t.TempDir(), "image")
	must(t, os.WriteFile(path, nil, 0o600))
	must(t, os.Truncate(path, 1<<20))
	t.Cleanup(func() {
		for _, access := range []Access{ReadWrite, ReadOnly} {
			if err := Detach(path, access); err != nil {
				t.Error(err)
			}
		}
		if left := found(t, path); len(left) > 0 {
			t.Errorf("still there: %v", left)
		}
	})
	return path
}

// A second device of one file would have a cache of its own, and two pods would not see each other's writes.
func TestOneDeviceForEachAccess(t *testing.T) {
	path := image(t)
	first, err := Attach(path, ReadWrite)
	must(t, err)
	again, err := Attach(path, ReadWrite)
	must(t, err)
	reader, err := Attach(path, ReadOnly)
	must(t, err)
	if first != again || reader == first {
		t.Errorf("devices %s, %s and %s", first, again, reader)
	}
	if all := found(t, path); len(all) != 2 {
		t.Errorf("found %v", all)
	}
}

func TestWrittenThroughTheDevice(t *testing.T) {
	path := image(t)
	device, err := Attach(path, ReadWrite)
	must(t, err)
	file, err := os.OpenFile(device, os.O_RDWR|os.O_SYNC, 0)
	must(t, err)
	_, err = file.WriteAt([]byte("hello"), 4096)
	must(t, err)
	must(t, file.Close())
	content, err := os.ReadFile(path)
	must(t, err)
	if string(content[4096:4101]) != "hello" {
		t.Error("what was written to the device is not in the file")
	}
}

func TestReadOnlyDeviceRefusesWrites(t *testing.T) {
	device, err := Attach(image(t), ReadOnly)
	must(t, err)
	file, err := os.OpenFile(device, os.O_RDWR, 0)
	if err == nil {
		_, err = file.WriteAt([]byte("hello"), 0)
		file.Close()
	}
	if err == nil {
		t.Error("it was written to")
	}
}

func TestDetachOfNothing(t *testing.T) {
	must(t, Detach(image(t), ReadWrite))
	must(t, Detach(filepath.Join(t.TempDir(), "nothing"), ReadWrite))
	if _, err := Attach(filepath.Join(t.TempDir(), "nothing"), ReadWrite); err == nil {
		t.Error("a device was made of nothing")
	}
}

// A device that somebody has open goes with the last close. Handed out again meanwhile it would vanish under its new user,
// whose device could then be another volume's.
func TestFreedWhileOpenIsKeptForTheNext(t *testing.T) {
	path := image(t)
	device, err := Attach(path, ReadWrite)
	must(t, err)
	lingering, err := os.Open(device)
	must(t, err)
	must(t, Detach(path, ReadWrite))
	device, err = Attach(path, ReadWrite)
	must(t, errors.Join(err, lingering.Close()))
	must(t, Verify(device, path, ReadWrite))
}

// The wrong implementation trusts the name of a device, which shows another file once it was freed.
func TestVerifyKnowsAnotherFile(t *testing.T) {
	path, other := image(t), image(t)
	device, err := Attach(path, ReadWrite)
	must(t, err)
	must(t, Verify(device, path, ReadWrite))
	if Verify(device, other, ReadWrite) == nil || Verify(device, path, ReadOnly) == nil {
		t.Error("the device was taken for another")
	}
	must(t, Detach(path, ReadWrite))
	if Verify(device, path, ReadWrite) == nil {
		t.Error("a device that was freed shows the file")
	}
}
