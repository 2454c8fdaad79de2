// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"io/fs"
	"math"
	"path"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
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

const (
	// lookAtMemory is how often an idle process looks for memory that it does not need any more.
	lookAtMemory = 5 * time.Second
	// restless is how many bytes a process allocates in that time that is not idle. Collecting garbage would
	// take processor time from its work, and soon be in vain.
	restless = 2 << 20
	// waste is how many bytes are worth it at least, and the share of what is in use: the more there is of that, the
	// longer a collection takes.
	waste, wasteShare = 1 << 20, 16
)

// tidy returns to the system what a burst of work has left, such as the first lists. Go gives back what is
// above the size to which the heap may grow again, and that is half more than what is in use.
func tidy(ctx context.Context, clk clock.Clock) {
	var k keeper
	for {
		select {
		case <-ctx.Done():
			return
		case <-clk.After(lookAtMemory):
		}
		if k.isWasteful(readHeap()) {
			debug.FreeOSMemory()
		}
	}
}

// heap is what Go says of it, in bytes.
type heap struct {
	// allocated only grows; free could be given back, objects may be garbage in part, live was in use at the
	// last collection.
	allocated, free, objects, live uint64
}

func readHeap() heap {
	samples := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"},
	}
	metrics.Read(samples)
	value := func(i int) uint64 {
		if samples[i].Value.Kind() != metrics.KindUint64 {
			return 0 // a Go that does not have it
		}
		return samples[i].Value.Uint64()
	}
	return heap{allocated: value(0), free: value(1), objects: value(2), live: value(3)}
}

// keeper compares what the process has with what it uses.
type keeper struct{ allocated uint64 }

// isWasteful tells that there is much to give back, and that nothing has happened since it was asked last.
func (k *keeper) isWasteful(now heap) bool {
	idle := now.allocated-k.allocated < restless
	k.allocated = now.allocated
	return idle && now.free+now.objects > now.live+max(waste, now.live/wasteShare)
}

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
