// SPDX-License-Identifier: Apache-2.0

// Package e2e plays whole lives of claims and snapshots with both sidecars as they are built, a real driver process and a
// real control plane. The sidecars run as the service accounts and with the rights of deploy/.
//
// It owns what can be seen from outside: objects, events, calls at the driver, data in volumes, and that nothing leaks.
// Each test has a driver and sidecars of its own, so that tests can run side by side and each can look at everything
// that its driver was asked.
//
// It must not know how the sidecars are made; it imports nothing of them.
//
// It stands outside the walks. Nothing here depends on how long something takes: conditions are waited for.
package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/csi-tandem/csi-tandem/test/controlplane"
	"github.com/csi-tandem/csi-tandem/test/stage"
	"github.com/csi-tandem/csi-tandem/test/story"
)

// alpha is what the API server does not do by default, and one of the sidecars can.
var alpha = map[controlplane.Part][]string{controlplane.APIServer: {"--feature-gates=CrossNamespaceVolumeDataSource=true"}}

// zoneKey is a topology key beside those of the story, so that each worker is in a place of its own.
const zoneKey = "e2e.example/zone"

// shared is one control plane for all tests.
var shared struct {
	sync.Once
	stage *stage.Stage
	err   error
}

func isWanted() bool { return os.Getenv("CSI_TANDEM_E2E") == "1" }

// parallel is how many tests wait at the same time. They wait more than they work, whatever the machine.
const parallel = "6"

func TestMain(m *testing.M) {
	flag.Parse()
	isChosen := false
	flag.Visit(func(f *flag.Flag) { isChosen = isChosen || f.Name == "test.parallel" })
	if !isChosen {
		if err := flag.Set("test.parallel", parallel); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	code := m.Run()
	if shared.stage != nil {
		code = shared.stage.Leave(code, rightsFaults)
	}
	os.Exit(code)
}

// rightsFaults looks at what was asked of the API server.
func rightsFaults(isGood bool) []string {
	faults := verbFaults(shared.stage, isGood && isWholeRun())
	for i := range faults {
		faults[i] = "rights: " + faults[i]
	}
	return faults
}

func theStage(t *testing.T) *stage.Stage {
	t.Helper()
	if !isWanted() {
		t.Skip("starts a control plane, a driver and both sidecars; set CSI_TANDEM_E2E=1, or run make e2e")
	}
	shared.Do(func() {
		// Not the context of the test that happens to be the first.
		shared.stage, shared.err = stage.Open(context.WithoutCancel(t.Context()), stage.Options{
			Out: os.Stderr, Nodes: nodes(), AuditLog: true, Args: alpha,
		})
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.stage
}

// nodes are the three of the story, each in a zone of its own as well. No driver is on the one of the control plane,
// whose zone is a place all the same.
func nodes() []controlplane.Node {
	all := story.Nodes(story.OneZone)
	for i := range all {
		labels := map[string]string{zoneKey: zones[all[i].Name]}
		for k, v := range all[i].Labels {
			labels[k] = v
		}
		all[i].Labels = labels
	}
	return all
}

var zones = map[string]string{"worker-1": "z1", "worker-2": "z2", "control-plane": "z3"}
