// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"

	"golang.org/x/sys/unix"
)

// hasHungUp says whether the other end of a socket is closed, even if there is still something to read from it.
func hasHungUp(fd uintptr) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	for {
		n, err := unix.Poll(fds, 0)
		if !errors.Is(err, unix.EINTR) {
			return err != nil || n > 0
		}
	}
}
