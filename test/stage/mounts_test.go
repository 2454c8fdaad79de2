// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestCloseSparesWhatStaysMounted catches a stage that removes its folder, and with it the content of a volume, although somebody is in
// the volume and it could not be unmounted.
func TestCloseSparesWhatStaysMounted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root mounts")
	}
	data, dir := t.TempDir(), t.TempDir()
	point, precious := filepath.Join(dir, "vol ume"), filepath.Join(data, "precious")
	if err := os.Mkdir(point, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(precious, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount(data, point, "", syscall.MS_BIND, ""); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(point, syscall.MNT_DETACH) }) // It is gone if all is well.
	reader, err := os.Open(filepath.Join(point, "precious"))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	s := &Stage{dir: dir}
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), dir+" stays") {
		t.Errorf("with a reader in the volume: %v", err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Fatal("the content of the volume is gone: ", err)
	}
	_ = reader.Close()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error("the content of the volume is gone: ", err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Error("the folder is there: ", err)
	}
}
