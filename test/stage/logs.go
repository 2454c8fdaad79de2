// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// KeepLogs removes all but the logs from the folder of a stage that has ended. It must not be called if the end failed:
// what is still mounted there is somebody's data.
func (s *Stage) KeepLogs() error {
	if err := keepLogs(s.dir); err != nil {
		return fmt.Errorf("removing all but the logs: %w", err)
	}
	return nil
}

func keepLogs(dir string) error {
	var folders []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			folders = append(folders, path)
			return nil
		case entry.Type().IsRegular() && filepath.Ext(path) == ".log":
			return nil
		}
		return os.Remove(path)
	})
	if err != nil {
		return err
	}
	// Those inside come after those around them. One with a log in it stays.
	slices.Reverse(folders)
	for _, folder := range folders {
		left, err := os.ReadDir(folder)
		if err == nil && len(left) == 0 {
			err = os.Remove(folder)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
