// SPDX-License-Identifier: Apache-2.0

package storagecapacity

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/test/kit"
)

// TestLackIsTold: who has switched publishing on is told once which piece is missing, the next one when that has come, and the end
// of it. Catches a room without segments or classes that says nothing, one that says it at each look, and one that blames
// nodes which register in the first seconds.
func TestLackIsTold(t *testing.T) {
	h := kit.New(t)
	var lines []string
	h.Ctx = klog.NewContext(h.Ctx, funcr.New(func(_, line string) {
		if strings.Contains(line, "torage capacity is published") {
			lines = append(lines, line)
		}
	}, funcr.Options{}))
	told := func(after time.Duration, wants ...string) {
		t.Helper()
		lines = nil
		h.Horizon = after
		h.Settle()
		if len(lines) != len(wants) {
			t.Fatalf("told %q, want %q\n%s", lines, wants, h.Trace())
		}
		for i, want := range wants {
			if !strings.Contains(lines[i], want) {
				t.Errorf("told %q, want %q", lines[i], want)
			}
		}
	}
	c := start(h)
	told(lackAfter - time.Second)
	told(10*time.Minute, "no CSINode lists driver")
	if !strings.HasPrefix(c.Lack(), "no CSINode lists driver") {
		t.Errorf("the page says %q", c.Lack())
	}
	h.Put(kit.CSINode("n1", "zone"), kit.Node("n1", map[string]string{"rack": "r"}))
	told(10*time.Minute, "no Node has labels for all of these")
	h.Put(kit.Node("n2", map[string]string{"zone": "a"}), kit.CSINode("n2", "zone"))
	told(10*time.Minute, "no StorageClass has the provisioner")
	h.Put(kit.Class("now"))
	told(10*time.Minute, "binds at once")
	h.Put(late("fast"))
	told(10*time.Minute, "Storage capacity is published from now on")
	if lack := c.Lack(); lack != "" {
		t.Errorf("the page says %q", lack)
	}
	expect(t, h, "published", "fast zone=a 1Ti")
	told(time.Hour)

	fine := world(t, "a")
	fine.Ctx = h.Ctx
	start(fine)
	lines, fine.Horizon = nil, time.Hour
	if fine.Settle(); len(lines) > 0 {
		t.Errorf("nothing was ever missing: %q", lines)
	}
}
