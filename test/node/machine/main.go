// SPDX-License-Identifier: Apache-2.0

// Command machine is what real nodes run inside: a view of this machine with mounts, processes and cgroups of its own,
// which end with its first process, however that ends. It is also the few programs that a node needs and that no module
// brings: the process that holds a pod, and a network plugin for pods that need no network.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

const usage = `usage: machine hold GROUP DIR...     be the first process of a machine in which these folders are seen, wherever they are
       machine enter PID GROUP PROGRAM [ARGUMENT...]   run a program inside
       machine pause                    be the first process of a pod
With CNI_COMMAND it is a network plugin.`

func init() {
	// What unshare and mount do is done to a thread, and those who enter look at the first one.
	runtime.LockOSThread()
}

func main() { os.Exit(start(os.Args)) }

func start(args []string) int {
	var err error
	switch {
	case os.Getenv("CNI_COMMAND") != "":
		err = plugin(os.Getenv("CNI_COMMAND"), os.Stdin, os.Stdout)
	case len(args) > 3 && args[1] == "hold":
		err = hold(args[2], args[3:])
	case len(args) > 4 && args[1] == "enter":
		err = enter(args[2], args[3], args[4:])
	case len(args) == 2 && args[1] == "pause":
		reap()
	default:
		fmt.Fprintln(os.Stderr, usage)
		return 2
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "machine:", err)
		return 1
	}
	return 0
}

// reap buries children that others have left to the first process, until it is told to end.
func reap() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGCHLD, syscall.SIGTERM, syscall.SIGINT)
	for s := range signals {
		if s != syscall.SIGCHLD {
			return
		}
		for {
			if id, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); id <= 0 || err != nil {
				break
			}
		}
	}
}
