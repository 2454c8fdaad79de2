// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	const first = "30 1 0:20 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n" +
		"31 30 0:21 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
		"32 30 0:22 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
		"33 30 0:23 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n" +
		"34 30 0:24 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n" +
		"35 30 0:22 /somebody /view rw - cgroup cgroup rw,memory\n"
	tests := []struct {
		name, table, member string
		want                map[string]string
	}{
		{"version 1, and a part of it seen elsewhere", first, "3:memory:/a/b\n2:cpu,cpuacct:/\n1:name=systemd:/s\n0::/\n", map[string]string{
			"cpu,cpuacct": "/sys/fs/cgroup/cpu,cpuacct/x", "memory": "/sys/fs/cgroup/memory/a/b/x", "name=systemd": "/sys/fs/cgroup/systemd/s/x",
		}},
		{"version 2", "30 1 0:20 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/user/me\n", map[string]string{"": "/sys/fs/cgroup/x"}},
		{"version 2, and one controller of version 1", "30 1 0:20 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n31 1 0:21 / /sys/fs/net_cls rw - cgroup cgroup rw,net_cls\n",
			"2:net_cls:/\n0::/user/me\n", map[string]string{"": "/sys/fs/cgroup/x"}},
		{"version 2 in a container, whose view is of a part", "30 1 0:20 /docker/1 /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n", "0::/docker/1\n", map[string]string{}},
		{"none", "1 0 8:1 / / rw - ext4 x rw\n", "0::/\n", map[string]string{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := map[string]string{}
			for _, h := range parse(tt.table, tt.member) {
				got[h.Options] = h.Path("x")
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// unique names a group: groups are of the whole machine, and others may run the same tests at the same time.
func unique(name string) string { return fmt.Sprintf("%s-%d-%08x", name, os.Getpid(), rand.Uint32()) }

// TestLifeOfAGroup: a process of a group below is ended with it, and nothing of the group stays.
func TestLifeOfAGroup(t *testing.T) {
	name := unique("csi-tandem-test")
	if os.Geteuid() != 0 {
		t.Skip("only root makes groups")
	}
	if err := Make(name + "/below"); err != nil {
		t.Skip("there are no groups to be made: ", err)
	}
	all, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // It has ended, if all is well.
	for _, h := range all {
		if err := os.WriteFile(h.Path(name+"/below/cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0); err != nil {
			t.Error(err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if err := Kill(name, time.Minute); err != nil {
		t.Error(err)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("it ended by itself")
		}
	case <-time.After(10 * time.Second):
		t.Error("it was not ended")
		_ = cmd.Process.Kill()
		<-ended
	}
	if err := Remove(name); err != nil {
		t.Error(err)
	}
	if left, err := Left(name); err != nil || len(left) > 0 {
		t.Errorf("left %q, %v", left, err)
	}
}
