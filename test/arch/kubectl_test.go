// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestKubectlPlugin: the wrapper gives each question to the program that knows, with all its words.
func TestKubectlPlugin(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no sh here")
	}
	script, err := os.ReadFile("../../deploy/kubectl/kubectl-csi")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	plugin := filepath.Join(bin, "kubectl-csi")
	files := map[string]string{plugin: string(script)}
	for _, name := range []string{"provisioner", "snapshotter"} {
		files[filepath.Join(bin, name)] = "#!/bin/sh\necho " + name + " \"$@\"\n"
	}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil { //nolint:gosec // they are to be run
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args, says string
		code       int
	}{
		{"explain pvc/data", "provisioner explain pvc/data", 0},
		{"explain -n team-a persistentvolumeclaim/data -o json", "provisioner explain -n team-a persistentvolumeclaim/data -o json", 0},
		{"explain vs/monday --driver-name=d", "snapshotter explain vs/monday --driver-name=d", 0},
		{"explain persistentvolume/pv-1", "provisioner explain persistentvolume/pv-1", 0},
		{"explain pv/pv-1", "provisioner explain pv/pv-1", 0},
		{"explain vsc/content -o=json", "snapshotter explain vsc/content -o=json", 0},
		{"explain volumesnapshotcontent.snapshot.storage.k8s.io/content", "snapshotter explain volumesnapshotcontent.snapshot.storage.k8s.io/content", 0},
		{"import old --handle=h --class=c", "snapshotter import old --handle=h --class=c", 0},
		{"explain data", "provisioner explain data", 0},
		{"explain -n team-a data -o json", "provisioner explain -n team-a data -o json", 0},
		{"explain -n pv PVC/data", "provisioner explain -n pv PVC/data", 0},
		{"explain volumesnapshot-of-monday --kubeconfig team/config", "provisioner explain volumesnapshot-of-monday", 0},
		{"version", "provisioner --version\nsnapshotter --version\n", 0},
		{"--version", "provisioner --version\nsnapshotter --version\n", 0},
		{"", "usage: kubectl csi explain", 2},
		{"--help", "usage: kubectl csi explain", 0},
		{"explain", "kubectl csi: explain what?\nusage: kubectl csi explain pvc/NAME|pv/NAME|vs/NAME|vsc/NAME", 2},
		{"explain pod/data", `kubectl csi: "pod/data" names nothing that can be explained` + "\nusage:", 2},
		{"explain -o=json pod/data", `kubectl csi: "pod/data" names nothing that can be explained` + "\nusage:", 2},
		{"explain vs monday", `kubectl csi: "vs" names nothing that can be explained: write vs/NAME, with a slash between the kind and the name` + "\nusage:", 2},
		{"delete pvc/data", `kubectl csi: there is no command "delete"` + "\nusage: kubectl csi explain", 2},
	} {
		cmd := exec.CommandContext(t.Context(), shell, append([]string{plugin}, strings.Fields(c.args)...)...)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.HasPrefix(string(out), c.says) {
			t.Errorf("%q: exit %d, %s", c.args, code, out)
		}
	}
}
