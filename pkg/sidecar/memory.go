// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"io/fs"
	"math"
	"path"
	"runtime/debug"
	"strconv"
	"strings"

	"k8s.io/klog/v2"
)

const (
	// memoryShare of the container's limit is for the heap; the rest is for what Go does not count.
	memoryShare = 0.9
	// collectAt is the growth in percent after which garbage is collected. The usual 100 lets a process take
	// twice of what it holds; most of the time these have little else to do.
	collectAt = 50
)

// fitMemory makes the garbage collector work harder before the kernel ends the process for its size. What
// the environment says about that counts instead.
func fitMemory(logger klog.Logger, root fs.FS, environment func(string) string) {
	if environment("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	if environment("GOMEMLIMIT") != "" {
		return
	}
	if limit := memoryLimit(root); limit < math.MaxInt64 {
		debug.SetMemoryLimit(int64(float64(limit) * memoryShare))
		logger.V(2).Info("The limit of the container's memory is kept in mind", "bytes", limit)
	}
}

// giveBack returns to the system what reading the first lists took and the caches do not keep. Left to
// itself, it would stay with the process for as long as that is idle.
func giveBack() { debug.FreeOSMemory() }

// memoryLimit is the smallest limit of the control groups that this process is in, of either version;
// math.MaxInt64 without any. A container mostly sees its own group as the root.
func memoryLimit(root fs.FS) int64 {
	least := int64(math.MaxInt64)
	groups, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(groups)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		base, file := "sys/fs/cgroup", "memory.max"
		switch {
		case fields[0] == "0" && fields[1] == "":
		case strings.Contains(","+fields[1]+",", ",memory,"):
			base, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for group := path.Clean("/" + fields[2]); ; group = path.Dir(group) {
			least = min(least, readLimit(root, path.Join(base, group, file)))
			if group == "/" {
				break
			}
		}
	}
	return least
}

// readLimit gives math.MaxInt64 for "max", for what is not there, and for the huge number that means none in
// the first version.
func readLimit(root fs.FS, name string) int64 {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return math.MaxInt64
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || limit <= 0 || limit > math.MaxInt64/2 {
		return math.MaxInt64
	}
	return limit
}
