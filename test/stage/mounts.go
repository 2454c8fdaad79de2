// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"

	"github.com/csi-tandem/csi-tandem/test/node"
)

// unmountBelow takes away what a driver has mounted below a folder and did not get to unmount: a folder with mounts in
// it cannot be removed.
func unmountBelow(dir string) error {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the table of mounts: %w", err)
	}
	points := node.MountsBelow(string(table), dir)
	// Later mounts may lie on earlier ones.
	slices.Reverse(points)
	var failures []error
	for _, point := range points {
		if err := syscall.Unmount(point, 0); err != nil {
			failures = append(failures, fmt.Errorf("unmounting %s: %w", point, err))
		}
	}
	return errors.Join(failures...)
}
