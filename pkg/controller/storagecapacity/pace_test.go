// SPDX-License-Identifier: Apache-2.0

package storagecapacity

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestBetween(t *testing.T) {
	p := pace{poll: time.Minute, retryStart: time.Second, retryMax: time.Minute}
	var got []string
	for _, failures := range []int{0, 1, 2, 3, 6, 7, 1000} {
		got = append(got, p.between(failures).String())
	}
	if d := cmp.Diff("1s 1s 2s 4s 32s 1m0s 1m0s", strings.Join(got, " ")); d != "" {
		t.Error(d)
	}
	// Catches doublings that go on beyond what a duration can tell, and come out as no wait at all.
	long := pace{poll: time.Minute, retryStart: 3 * time.Hour, retryMax: 24 * time.Hour}
	for failures := 1; failures < 100; failures++ {
		if got := long.between(failures); got < long.retryStart || got > long.retryMax {
			t.Fatalf("after %d failures it is asked again after %v", failures, got)
		}
	}
	for segments, want := range map[int]time.Duration{1: time.Second, 100: time.Second, 5000: 50 * time.Second, 100000: time.Minute} {
		if got := p.betweenAll(segments); got != want {
			t.Errorf("%d segments: %v, want %v", segments, got, want)
		}
	}
	if got := (pace{poll: 100 * time.Millisecond}).between(0); got != 100*time.Millisecond {
		t.Errorf("a short poll waits for %v", got)
	}
}

// Polls are spread over the whole interval, each keeps its time, and other processes have other times.
func TestUntilPoll(t *testing.T) {
	one, other := pace{identity: "1", poll: time.Minute}, pace{identity: "2", poll: time.Minute}
	now := time.Unix(1e9, 12345)
	tenths, differ := map[int]int{}, 0
	for i := range 1000 {
		key := askKey("g", fmt.Sprint(i))
		first := one.untilPoll(key, now)
		if first < 30*time.Second || first >= 90*time.Second {
			t.Fatalf("first poll after %v", first)
		}
		tenths[int((first-30*time.Second)/(6*time.Second))]++
		if next := one.untilPoll(key, now.Add(first)); next != time.Minute {
			t.Fatalf("then after %v", next)
		}
		if late := one.untilPoll(key, now.Add(first+time.Second)); late != 59*time.Second {
			t.Fatalf("a late one moves the next to %v", late)
		}
		if other.untilPoll(key, now) != first {
			differ++
		}
	}
	for tenth, n := range tenths {
		if n > 200 {
			t.Errorf("%d of 1000 in tenth %d", n, tenth)
		}
	}
	if len(tenths) != 10 || differ < 990 {
		t.Errorf("in %d tenths, %d differ", len(tenths), differ)
	}
}

func TestOptions(t *testing.T) {
	flags := map[string]string{}
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	NewOptions().AddFlags(fs)
	fs.VisitAll(func(f *flag.Flag) { flags[f.Name] = f.DefValue })
	want := map[string]string{
		"enable-capacity": "false", "capacity-threads": "10", "capacity-poll-interval": "1m0s", "capacity-for-immediate-binding": "false",
		"capacity-ownerref-level": "1", "kube-api-capacity-qps": "-1", "kube-api-capacity-burst": "5",
	}
	if d := cmp.Diff(want, flags); d != "" {
		t.Error(d)
	}
	for _, c := range []struct {
		options Options
		says    string
	}{
		{Options{}, ""},
		{Options{Enabled: true, Threads: 1, PollInterval: 1}, ""},
		{Options{Enabled: true, PollInterval: 1}, "--capacity-threads=0"},
		{Options{Enabled: true, Threads: 1}, "--capacity-poll-interval=0s"},
		{Options{Enabled: true, Threads: 1, PollInterval: 1, QPS: 1}, "--kube-api-capacity-burst=0"},
		{Options{Enabled: true, Threads: 1, PollInterval: 1, QPS: 1, Burst: 1}, ""},
	} {
		err := c.options.Validate()
		if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.options, err)
		}
	}
}
