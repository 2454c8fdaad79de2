// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/fstest"

	"k8s.io/klog/v2"
)

func files(pairs ...string) fstest.MapFS {
	tree := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		tree[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return tree
}

func TestMemoryLimit(t *testing.T) {
	const none = int64(math.MaxInt64)
	for name, row := range map[string]struct {
		tree fstest.MapFS
		want int64
	}{
		"no control groups": {files(), none},
		"a container":       {files("proc/self/cgroup", "0::/\n", "sys/fs/cgroup/memory.max", "104857600\n"), 104857600},
		"no limit":          {files("proc/self/cgroup", "0::/\n", "sys/fs/cgroup/memory.max", "max\n"), none},
		"the group above has less": {files("proc/self/cgroup", "0::/pod/box\n",
			"sys/fs/cgroup/pod/box/memory.max", "200\n", "sys/fs/cgroup/pod/memory.max", "100\n"), 100},
		"the first version": {files("proc/self/cgroup", "9:cpu,cpuacct:/a\n4:memory:/a\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes", "300\n", "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"), 300},
		"the first version in a container, which sees the path of outside": {files("proc/self/cgroup", "4:memory:/kubepods/x\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes", "400\n"), 400},
		"both, with the limit in the first": {files("proc/self/cgroup", "4:memory:/\n0::/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes", "500\n"), 500},
		"nonsense": {files("proc/self/cgroup", "nonsense\n0::../..\n", "sys/fs/cgroup/memory.max", "-5\n"), none},
	} {
		if got := memoryLimit(row.tree); got != row.want {
			t.Errorf("%s: %d, want %d", name, got, row.want)
		}
	}
}

func TestTheEnvironmentCountsMoreThanTheContainer(t *testing.T) {
	limit, percent := debug.SetMemoryLimit(-1), debug.SetGCPercent(100)
	defer func() { debug.SetMemoryLimit(limit); debug.SetGCPercent(percent) }()
	tree := files("proc/self/cgroup", "0::/\n", "sys/fs/cgroup/memory.max", "1000000000\n")
	set := map[string]string{"GOMEMLIMIT": "5GiB", "GOGC": "70"}
	fitMemory(klog.Background(), tree, func(name string) string { return set[name] })
	if now, gc := debug.SetMemoryLimit(-1), debug.SetGCPercent(100); now != limit || gc != 100 {
		t.Errorf("changed to %d bytes, %d percent", now, gc)
	}
	clear(set)
	fitMemory(klog.Background(), tree, func(name string) string { return set[name] })
	if now, gc := debug.SetMemoryLimit(-1), debug.SetGCPercent(100); now != 900000000 || gc != collectAt {
		t.Errorf("%d bytes, %d percent", now, gc)
	}
}

// Catches memory that stays with an idle process, and one that collects garbage while it works or in vain.
func TestWhatABurstLeavesIsGivenBackAtRest(t *testing.T) {
	const mega = 1 << 20
	var k keeper
	for _, row := range []struct {
		name string
		now  heap
		want bool
	}{
		{"at work", heap{allocated: 100 * mega, free: 20 * mega, objects: 40 * mega, live: 30 * mega}, false},
		{"at rest, with spans that are free", heap{allocated: 101 * mega, free: 20 * mega, objects: 30 * mega, live: 30 * mega}, true},
		{"at rest, with garbage", heap{allocated: 101 * mega, objects: 50 * mega, live: 30 * mega}, true},
		{"at rest, with nothing to give back", heap{allocated: 102 * mega, free: mega / 2, objects: 31 * mega, live: 30 * mega}, false},
		{"at rest, with what a large one may waste", heap{allocated: 103 * mega, free: mega, objects: 161 * mega, live: 160 * mega}, false},
		{"at rest, with what a small one may not", heap{allocated: 104 * mega, free: mega, objects: 9 * mega, live: 8 * mega}, true},
		{"at work again", heap{allocated: 107 * mega, free: 20 * mega, objects: 30 * mega, live: 30 * mega}, false},
	} {
		if got := k.isWasteful(row.now); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
}

// Catches a name of a figure that Go does not have (any more): it would be 0 for ever.
func TestHeapIsRead(t *testing.T) {
	runtime.GC()
	if h := readHeap(); h.allocated == 0 || h.objects == 0 || h.live == 0 {
		t.Errorf("%+v", h)
	}
}
