// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// saying makes the test's own binary say what is missing, for somebody else.
const saying = "CSI_TANDEM_SAY_MISSING"

// TestMissing: whoever cannot have real nodes is told so before anything is started, and in one line. Catches a look that takes root of
// a user namespace for root of the machine: the nodes fail later, half built.
func TestMissing(t *testing.T) {
	if os.Getenv(saying) != "" {
		t.Log("missing: " + strings.Join(Missing(), "; "))
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can be others")
	}
	const file = "--inh-caps=+dac_override,+dac_read_search"
	for _, tt := range []struct {
		name, want string
		with       []string
	}{
		{"another user", "missing: real nodes need root, and this is user 65534\n", []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", file, strings.Replace(file, "inh", "ambient", 1)}},
		{"root of a user namespace", "missing: real nodes need root of this machine, and this is root of a user namespace\n", []string{"unshare", "--user", "--map-root-user"}},
		{"no mounts", "this process may not make namespaces with mounts of their own: ", []string{"setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if exec.Command(tt.with[0], append(tt.with[1:], "true")...).Run() != nil {
				t.Skipf("there is no %s here that does this", tt.with[0])
			}
			cmd := exec.Command(tt.with[0], append(tt.with[1:], os.Args[0], "-test.run=^TestMissing$", "-test.v")...)
			cmd.Env = append(os.Environ(), saying+"=1")
			said, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(said), tt.want) {
				t.Errorf("says %s, %v, want %s", said, err, tt.want)
			}
		})
	}
}

// TestMissingInTheFolderForTemporaryFiles catches a look that does not do there what a run will: it fails after a minute, with words that do
// not say what to do.
func TestMissingInTheFolderForTemporaryFiles(t *testing.T) {
	if foreign() != "" || canHold() != nil {
		t.Skip("there are no real nodes here anyway")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOEXEC, ""); err != nil {
		t.Skip("this process may not mount: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	for path, want := range map[string]string{dir: "noexec", "/tmp/a:b": `":"`, "/tmp/a,b": `","`, "/tmp/it's": `"'"`, `/tmp/a\b`: `"\\"`} {
		t.Setenv("TMPDIR", path)
		if said := strings.Join(Missing(), "; "); !strings.Contains(said, want) || !strings.Contains(said, "set TMPDIR to another one") {
			t.Errorf("%s: says %q", path, said)
		}
	}
}

// TestMissingPrograms: the sentence names each with "no" before it.
func TestMissingPrograms(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	said := "no " + strings.Join(programsMissing(), ", no ")
	if want := "no nsenter, no losetup, no mount, no umount, no static busybox, no gcc, no pkg-config"; said != want {
		t.Errorf("says %q, want %q", said, want)
	}
}

func TestIsOfMachine(t *testing.T) {
	for users, want := range map[string]bool{
		"         0          0 4294967295\n": true, "0 1000 1\n": false, "0 100000 65536\n": false, "0 0 1\n": false, "0 0 65536\n100000 100000 65536\n": false, "": false,
	} {
		if isOfMachine(users) != want {
			t.Errorf("%q: want %t", users, want)
		}
	}
}
