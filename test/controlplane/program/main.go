// SPDX-License-Identifier: Apache-2.0

// Command controlplane is a real Kubernetes control plane in one program: etcd, kube-apiserver,
// kube-controller-manager and kube-scheduler, chosen by the first argument. They run as separate
// processes of the one binary because they share global registries, and because tests want to kill one.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

const usage = "usage: controlplane etcd|kube-apiserver|kube-controller-manager|kube-scheduler [flags]"

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	var command *cobra.Command
	switch part := os.Args[1]; part {
	case "etcd":
		etcdmain.Main(os.Args[1:])
		return
	case "kube-apiserver":
		command = apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		command = controllermanager.NewControllerManagerCommand()
	case "kube-scheduler":
		command = scheduler.NewSchedulerCommand()
	default:
		fmt.Fprintf(os.Stderr, "controlplane: no part is called %q\n%s\n", part, usage)
		os.Exit(2)
	}
	os.Args = os.Args[1:]
	os.Exit(cli.Run(command))
}
