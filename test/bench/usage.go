// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// usage is what a process has taken of the machine. On systems without a proc file system it is not known.
type usage struct {
	cpu       time.Duration
	resident  int64
	peak      int64
	isUnknown bool
}

// clockTick is the unit of processor time in proc files, which Linux fixes for programs at a hundredth of a second.
const clockTick = 10 * time.Millisecond

func usageOf(pid int) usage {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{isUnknown: true}
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return usage{isUnknown: true}
	}
	u, err := parseUsage(stat, status)
	if err != nil {
		return usage{isUnknown: true}
	}
	return u
}

func parseUsage(stat, status []byte) (usage, error) {
	// The name of the program stands in brackets and may hold anything; the state comes first after it.
	end := bytes.LastIndex(stat, []byte(") "))
	fields := bytes.Fields(stat[end+1:])
	const user, system = 11, 12
	if end < 0 || len(fields) <= system {
		return usage{}, fmt.Errorf("reading processor time: %q is not a line of stat", stat)
	}
	var u usage
	for _, at := range []int{user, system} {
		ticks, err := strconv.ParseInt(string(fields[at]), 10, 64)
		if err != nil {
			return usage{}, fmt.Errorf("reading processor time: %w", err)
		}
		u.cpu += time.Duration(ticks) * clockTick
	}
	for line := range bytes.Lines(status) {
		words := bytes.Fields(line)
		if len(words) != 3 {
			continue
		}
		kibibytes, err := strconv.ParseInt(string(words[1]), 10, 64)
		switch string(words[0]) {
		case "VmRSS:":
			u.resident = kibibytes << 10
		case "VmHWM:":
			u.peak = kibibytes << 10
		default:
			continue
		}
		if err != nil {
			return usage{}, fmt.Errorf("reading memory: %w", err)
		}
	}
	return u, nil
}

// forgetPeak makes the kernel measure the peak anew. Where that cannot be, the peak is the one since the start.
func forgetPeak(pid int) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}
