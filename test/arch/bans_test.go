// SPDX-License-Identifier: Apache-2.0

package arch

import "testing"

var banProofs = []proof{
	{"the clock", "purity", "pkg/topology/topology.go", "package topology\nimport \"time\"\nvar x = time.Now()\n", "time.Now in a pure package"},
	{"waiting", "purity", "pkg/snapshot/next.go", "package snapshot\nimport \"time\"\nfunc f() { time.Sleep(1) }\n", "time.Sleep"},
	{"a duration is a value", "purity", "pkg/snapshot/next.go", "package snapshot\nimport \"time\"\nconst wait = time.Second\n", ""},
	{"a goroutine", "purity", "pkg/provision/next.go", "package provision\nfunc f() { go f() }\n", "goroutine"},
	{"a channel", "purity", "pkg/capacity/diff.go", "package capacity\nvar c chan int\n", "channel"},
	{"the machine around", "purity", "pkg/params/params.go", "package params\nimport \"os\"\nvar x = os.Getenv(\"X\")\n", "os.Getenv"},
	{"templates", "purity", "pkg/params/params.go", "package params\nimport \"os\"\nvar x = os.Expand(\"X\", nil)\n", ""},
	{"hands may", "purity", "pkg/kube/kube.go", "package kube\nfunc f() { go f() }\n", ""},

	{"in a room", "exit", "pkg/controller/claim/act.go", "package claim\nimport \"os\"\nfunc f() { os.Exit(1) }\n", "os.Exit outside main.go"},
	{"beside main", "exit", "cmd/provisioner/wire.go", "package main\nimport \"os\"\nfunc f() { os.Exit(1) }\n", "os.Exit"},
	{"in main", "exit", "cmd/provisioner/main.go", "package main\nimport \"os\"\nfunc main() { os.Exit(1) }\n", ""},
	{"in klog's clothes", "exit", "pkg/sidecar/run.go", "package sidecar\nimport \"k8s.io/klog/v2\"\nfunc f() { klog.V(klog.ExitFlushTimeout); klog.Fatalf(\"\") }\n", "Fatalf"},
	{"in log's clothes", "exit", "pkg/sidecar/run.go", "package sidecar\nimport \"log\"\nfunc f() { log.Fatal() }\n", "log.Fatal"},

	{"in a hand", "background", "pkg/kube/secret.go", "package kube\nimport \"context\"\nvar c = context.Background()\n", "context.Background"},
	{"under another name", "background", "pkg/kube/secret.go", "package kube\nimport c \"context\"\nvar x = c.Background()\n", "context.Background"},
	{"in main", "background", "cmd/snapshotter/main.go", "package main\nimport \"context\"\nvar c = context.Background()\n", ""},
	{"in a test", "background", "pkg/kube/secret_test.go", "package kube\nimport \"context\"\nvar c = context.Background()\n", ""},
	{"still to think about", "background", "pkg/kube/secret_test.go", "package kube\nimport \"context\"\nvar c = context.TODO()\n", "context.TODO"},

	{"now in a room", "clock", "pkg/controller/volume/act.go", "package volume\nimport \"time\"\nvar n = time.Now()\n", "time.Now"},
	{"a timer in a hand", "clock", "pkg/reconcile/loop.go", "package reconcile\nimport \"time\"\nvar n = time.NewTimer(1)\n", "time.NewTimer"},
	{"the roof has the clock", "clock", "pkg/sidecar/clock.go", "package sidecar\nimport \"time\"\nvar n = time.Now()\n", ""},
	{"chance", "clock", "pkg/reconcile/jitter.go", "package reconcile\nimport \"math/rand/v2\"\nvar n = rand.Int()\n", "math/rand/v2"},

	{"a whole write", "update", "pkg/kube/claim.go", "package kube\nfunc f() { c.Update(ctx, pvc, o) }\n", ".Update(ctx, …)"},
	{"a whole status", "update", "pkg/controller/content/act.go", "package content\nfunc f() { c.UpdateStatus(r.ctx(), o); d.UpdateStatus(ctx, o) }\n", ".UpdateStatus(ctx, …)"},
	{"a PUT by hand", "update", "pkg/kube/rest.go", "package kube\nfunc f() { c.Put().Do(ctx) }\n", ".Put()"},
	{"an index is no API object", "update", "pkg/topology/index.go", "package topology\nfunc f() { i.Update(node); pool.Put(x) }\n", ""},
	{"a test may play the user", "update", "pkg/kube/claim_test.go", "package kube\nfunc f() { c.Update(ctx, pvc, o) }\n", ""},

	{"the process's own set", "flags", "pkg/controller/claim/options.go", "package claim\nimport \"flag\"\nvar x = flag.String(\"a\", \"\", \"\")\n", "flag.String"},
	{"a set that is handed in", "flags", "pkg/controller/claim/options.go", "package claim\nimport \"flag\"\nfunc f(fs *flag.FlagSet) {}\n", ""},
}

func TestBans(t *testing.T) { prove(t, banProofs) }
