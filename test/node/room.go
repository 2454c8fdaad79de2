// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	// socketLimit is what Linux leaves for the path of a socket.
	socketLimit = 107
	// nameRoom is kept for the name of a driver, which is in the longest of these paths.
	nameRoom = 18
)

// Registration is the socket by which a driver tells the kubelet whose folder this is of itself.
func Registration(kubelet, driver string) string {
	return filepath.Join(kubelet, "plugins_registry", driver+"-reg.sock")
}

// CheckSocket refuses a path that is too long for a socket in the folder for temporary files.
func CheckSocket(path string) error {
	over := len(path) - socketLimit
	if over <= 0 {
		return nil
	}
	return fmt.Errorf("the path of the folder for temporary files, %s, is too long for the sockets that are made in it: set TMPDIR to one of at most %d characters, such as /tmp",
		os.TempDir(), len(os.TempDir())-over)
}

// checkRoom looks at the longest path, so that nobody learns of it when everything else is up.
func checkRoom(dir string, nodes []string) error {
	longest := ""
	for _, name := range nodes {
		if len(name) > len(longest) {
			longest = name
		}
	}
	return CheckSocket(Registration(filepath.Join(dir, longest, "kubelet"), strings.Repeat("x", nameRoom)))
}
