// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

const gib = 1 << 30

// nodes is a world in which each node has a driver and a process of its own, which know nothing of each other.
type nodes struct {
	*kit.Harness
	drivers map[string]*kit.Driver
	// free is how much room each node has for volumes.
	free map[string]int64
}

func localCapabilities() capability.Set {
	plugins := []capability.Plugin{
		csi.PluginCapability_Service_CONTROLLER_SERVICE, csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS,
	}
	return capability.Of(plugins, csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csi.ControllerServiceCapability_RPC_GET_CAPACITY,
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT)
}

// onNodes starts the room on nodes with the given room for volumes.
func onNodes(t *testing.T, free map[string]int64, objects ...kube.Object) *nodes {
	n := &nodes{Harness: kit.New(t), drivers: map[string]*kit.Driver{}, free: free}
	n.MaxTurns = 50000
	n.Put(objects...)
	n.Play(kit.Binder(n.API))
	for _, name := range slices.Sorted(maps.Keys(free)) {
		n.drivers[name] = kit.NewDriver(n.Clock, n.Log)
		n.drivers[name].Capacity = func(*csi.GetCapacityRequest) *csi.GetCapacityResponse {
			return &csi.GetCapacityResponse{AvailableCapacity: n.free[name] - n.stored(name)*gib}
		}
		n.join(name)
	}
	return n
}

// stored counts the volumes of a node that have a PersistentVolume.
func (n *nodes) stored(name string) (count int64) {
	for _, v := range kit.All[*corev1.PersistentVolume](n.API) {
		if v.Spec.NodeAffinity != nil && v.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0] == name {
			count++
		}
	}
	return count
}

// join starts the room of one node.
func (n *nodes) join(name string) { joinWith(n.Harness, name, n.drivers[name]) }

func joinWith(n *kit.Harness, name string, driver *kit.Driver) {
	segment := topology.SegmentOf(map[string]string{"host": name})
	index := topology.NewIndex()
	index.SetNode(name, segment.Labels())
	index.SetDriverKeys(name, []string{"host"})
	options := claim.NewOptions()
	options.NodeDeployment = true
	c := claim.New(*options, claim.Deps{
		Client: n.API, Driver: driver, Surveyor: driver, CountNodes: claim.CountNodes(n.API),
		DriverName: kit.DriverName, Identity: "1-2-" + kit.DriverName + "-" + name, Capabilities: localCapabilities(),
		Recorder: n.Recorder, Clock: n.Clock, Topology: index, Local: options.Serving(name, segment),
		Claims: n.Stores.Claims, Volumes: n.Stores.Volumes, Classes: n.Stores.StorageClasses,
		RetryStart: n.RetryStart, RetryMax: n.RetryMax,
	})
	n.Add(kit.Room{Name: name, Reconcile: c.Reconcile, Keys: kit.Feeds(kit.On(c.KeysOfClaim), kit.On(c.KeysOfClass), kit.On(c.KeysOfSnapshot))})
}

// made tells on which nodes there is a volume.
func (n *nodes) made() map[string]int {
	counts := map[string]int{}
	for name, d := range n.drivers {
		if count := len(d.Inventory()); count > 0 {
			counts[name] = count
		}
	}
	return counts
}

// selected is the node that is written on a claim.
func (n *nodes) selected(name string) string {
	found, ok := kit.Read[*corev1.PersistentVolumeClaim](n.API, kube.Key{Namespace: kit.Namespace, Name: name})
	if !ok {
		n.T.Fatalf("there is no claim %s", name)
	}
	return found.Annotations[wellknown.AnnSelectedNode]
}

func gibs(count int64) map[string]int64 {
	return map[string]int64{"n1": count * gib, "n2": count * gib, "n3": count * gib}
}

func owned(lines []string) (count int) {
	for _, line := range lines {
		if strings.HasPrefix(line, "patch persistentvolumeclaims") && strings.Contains(line, wellknown.AnnSelectedNode) {
			count++
		}
	}
	return count
}

func onHost(hosts ...string) func(*storagev1.StorageClass) {
	return func(c *storagev1.StorageClass) {
		c.AllowedTopologies = []corev1.TopologySelectorTerm{{
			MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "host", Values: hosts}},
		}}
	}
}

// T98: a process that does not look whether another was faster makes a second volume; one that patches without
// the resource version takes the claim from the first.
func TestOneNodeTakesTheClaim(t *testing.T) {
	t.Run("T98 T99 one of three nodes", func(t *testing.T) {
		n := onNodes(t, gibs(10), kit.Class(kit.ClassName), kit.Claim("data"))
		n.Settle()
		if got := n.made(); len(got) != 1 {
			t.Errorf("volumes on %v", got)
		}
		if count := owned(n.Log.Lines()); count != 1 {
			t.Errorf("the node was selected %d times:\n%s", count, strings.Join(n.Log.Lines(), "\n"))
		}
		if node := n.selected("data"); n.made()[node] != 1 {
			t.Errorf("selected is %q, volumes on %v", node, n.made())
		}
	})
	t.Run("T98 all of them see old caches", func(t *testing.T) {
		n := onNodes(t, gibs(10), kit.Class(kit.ClassName), kit.Claim("data"))
		n.Stores.Lag(20)
		n.Settle()
		if got := n.made(); len(got) != 1 {
			t.Errorf("volumes on %v", got)
		}
	})
	t.Run("T98 no node has the room", func(t *testing.T) {
		n := onNodes(t, gibs(0), kit.Class(kit.ClassName), kit.Claim("data"))
		n.Horizon = 30 * time.Second
		n.Settle()
		for _, line := range n.Log.Lines() {
			if !strings.Contains(line, "GetCapacity") {
				t.Errorf("an effect of a node that only looked: %s", line)
			}
		}
	})
}

// B041: whoever writes the annotation first, and looks at allowedTopologies only when it provisions, takes
// claims that it can never serve.
func TestOnlyAllowedNodes(t *testing.T) {
	n := onNodes(t, gibs(20), kit.Class(kit.ClassName, onHost("n1")))
	for i := range 50 {
		n.Put(kit.Claim(fmt.Sprint("data-", i)))
	}
	n.Settle()
	if got := n.made(); got["n1"] != 20 || len(got) != 1 {
		t.Errorf("B041: volumes on %v, want 20 on n1 and none elsewhere", got)
	}
	waiting, told := 0, 0
	for i := range 50 {
		switch n.selected(fmt.Sprint("data-", i)) {
		case "":
			waiting++
		case "n1":
		default:
			t.Errorf("B041: claim %d was taken by another node", i)
		}
	}
	for _, line := range n.Log.Lines() {
		if strings.HasPrefix(line, "event ") && strings.Contains(line, `node "n1" has no room`) {
			told++
		}
	}
	if waiting != 30 || told < 30 {
		t.Errorf("B041: %d claims wait and %d events say why, want 30", waiting, told)
	}
}

// TestNoNodeIsAllowed: each node knows of itself alone, so that each leaves the claim to others. Catches nodes that do so in silence,
// and such that each tell of it in words of their own, thousands of them; and nodes that look no more, so that a class that was
// corrected helps nothing.
func TestNoNodeIsAllowed(t *testing.T) {
	const text = `no node that allowedTopologies of StorageClass "` + kit.ClassName + `" allow has taken the claim so far; `
	for name, c := range map[string]struct {
		key, value, want string
	}{
		"B041 a value that none has": {"host", "n9", text + "see that the driver runs on a node of these places"},
		"B041 a key with a slip":     {"hots", "n1", text + "allowedTopologies of the class name the key hots, which the driver does not have on that node, did you mean host?"},
	} {
		t.Run(name, func(t *testing.T) {
			class := kit.Class(kit.ClassName, onHost(c.value))
			class.AllowedTopologies[0].MatchLabelExpressions[0].Key = c.key
			n := onNodes(t, gibs(20), class, kit.Claim("data"))
			n.Horizon = 10 * time.Minute
			n.Settle()
			told := map[string]bool{}
			for _, line := range n.Log.Lines() {
				if strings.HasPrefix(line, "event ") {
					told[line] = true
				}
			}
			if lines := strings.Join(slices.Collect(maps.Keys(told)), "\n"); len(told) != 1 || !strings.Contains(lines, c.want) {
				t.Errorf("told:\n%s\nwant one with\n%s", lines, c.want)
			}
			kit.Edit(n.API, kube.Key{Name: kit.ClassName}, func(o *storagev1.StorageClass) { o.AllowedTopologies = nil })
			n.Settle()
			if len(n.made()) != 1 {
				t.Error("the class was corrected, and there is no volume")
			}
		})
	}
}

func TestClaimsSpreadByRoom(t *testing.T) {
	n := onNodes(t, map[string]int64{"n1": 12 * gib, "n2": 5 * gib, "n3": 2 * gib}, kit.Class(kit.ClassName))
	for i := range 19 {
		n.Put(kit.Claim(fmt.Sprint("data-", i)))
	}
	n.Settle()
	if got := n.made(); got["n1"] != 12 || got["n2"] != 5 || got["n3"] != 2 {
		t.Errorf("volumes on %v: every node should be full", got)
	}
}

// P-10: a process that sleeps in a worker until its turn comes leaves none for the claims that have a node.
func TestNobodySleeps(t *testing.T) {
	n := onNodes(t, gibs(100), kit.Class(kit.ClassName))
	for i := range 200 {
		n.Put(kit.Claim(fmt.Sprint("any-", i)))
	}
	n.Put(kit.Claim("mine", kit.OnNode("n2")))
	n.Horizon = 0
	n.Settle()
	if n.made()["n2"] == 0 {
		t.Error("P-10: the claim that has a node waits for those that have none")
	}
}

func TestLateBindingIsLeftToTheScheduler(t *testing.T) {
	n := onNodes(t, gibs(10), kit.Class(kit.ClassName, kit.WaitForConsumer), kit.Claim("data"), kit.Claim("mine", kit.OnNode("n3")))
	n.Settle()
	if got := n.made(); len(got) != 1 || got["n3"] != 1 {
		t.Errorf("T97: volumes on %v", got)
	}
	if node := n.selected("data"); node != "" {
		t.Errorf("T97: node %q was selected without a pod", node)
	}
}

// A full node gives the claim back, and another takes it.
func TestExhaustedNodeGivesBack(t *testing.T) {
	n := onNodes(t, gibs(10), kit.Class(kit.ClassName), kit.Claim("data", kit.OnNode("n1")))
	n.drivers["n1"].Next("CreateVolume", kit.Reply{Code: codes.ResourceExhausted, Text: "full", Times: 99})
	n.Settle()
	if got := n.made(); len(got) != 1 || got["n1"] != 0 {
		t.Errorf("volumes on %v", got)
	}
}

// W-12: to ask is no reason to change anything. What is checked before a node has the claim is checked on all: one that
// goes through the whole preparation holds the sources, reads the secret and tells what is wrong, once on each node.
func TestLookingHasNoEffects(t *testing.T) {
	secret := func(c *storagev1.StorageClass) {
		c.Parameters = map[string]string{wellknown.ParamSecretName: "s", wellknown.ParamSecretNamespace: kit.Namespace}
	}
	for _, c := range []struct {
		name   string
		class  *storagev1.StorageClass
		claim  *corev1.PersistentVolumeClaim
		source func(*kit.Harness)
	}{
		{"W-12 a plain claim", kit.Class(kit.ClassName), kit.Claim("data"), nil},
		{"W-12 a class with a secret that is missing", kit.Class(kit.ClassName, secret), kit.Claim("data"), nil},
		{"W-12 a restore", kit.Class(kit.ClassName), kit.Claim("data", kit.FromSnapshot("snap")), func(h *kit.Harness) { snapshotOf(h, "snap") }},
		{"W-12 a restore of nothing", kit.Class(kit.ClassName), kit.Claim("data", kit.FromSnapshot("snap")), nil},
		{"W-12 a clone", kit.Class(kit.ClassName), kit.Claim("data", kit.FromClaim("source")), cloneSource},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := onNodes(t, gibs(10), c.class, c.claim)
			if c.source != nil {
				c.source(n.Harness)
			}
			n.Log.Clear()
			before := len(n.API.Requests())
			n.Horizon = 0
			n.Settle()
			for _, line := range n.Log.Lines() {
				if !strings.Contains(line, "GetCapacity") {
					t.Error(line)
				}
			}
			if len(n.Log.Lines()) == 0 {
				t.Error("nobody has asked for room")
			}
			for _, r := range n.API.Requests()[before:] {
				if r.Resource == "secrets" || r.Verb != "get" && r.Verb != "list" {
					t.Errorf("%s", r)
				}
			}
		})
	}
}

// W-10: what makes out the class on the way to a claim that has no node must not look at the field alone.
func TestOldClassAnnotationOnNodes(t *testing.T) {
	n := onNodes(t, gibs(10), kit.Class(kit.ClassName), kit.Claim("data", func(c *corev1.PersistentVolumeClaim) {
		c.Spec.StorageClassName = nil
		c.Annotations[wellknown.AnnBetaStorageClass] = kit.ClassName
	}))
	n.Settle()
	if got := n.made(); len(got) != 1 || n.selected("data") == "" {
		t.Errorf("W-10: volumes on %v, selected is %q", got, n.selected("data"))
	}
}

// What a node has made while its claim went to another one is removed: neither node's driver knows the other's
// volume of the same name.
func TestStrayVolumeIsRemoved(t *testing.T) {
	n := onNodes(t, gibs(10), kit.Class(kit.ClassName), kit.Claim("data", kit.OnNode("n1")))
	n.drivers["n1"].Next("CreateVolume", kit.Reply{Code: codes.DeadlineExceeded, Text: "slow", Done: true})
	n.Horizon = 0
	n.Settle() // made on n1, and the answer was lost
	kit.Edit(n.API, dataKey, func(c *corev1.PersistentVolumeClaim) { c.Annotations[wellknown.AnnSelectedNode] = "n2" })
	n.Horizon = 30 * time.Minute
	n.Settle()
	if got := n.made(); len(got) != 1 || got["n2"] != 1 {
		t.Errorf("volumes on %v\n%s", got, strings.Join(n.Log.Lines(), "\n"))
	}
	volumes := kit.All[*corev1.PersistentVolume](n.API)
	if len(volumes) != 1 || !slices.Contains([]string{name}, volumes[0].Name) {
		t.Errorf("there are %d PersistentVolumes", len(volumes))
	}
}

// Wherever the program ends between taking a claim and its PersistentVolume, the next one goes on.
func TestCrashWhileTaking(t *testing.T) {
	kit.Crash(t, kit.Scenario{
		World: func(h *kit.Harness) {
			h.Put(kit.Class(kit.ClassName), kit.Claim("data"))
			h.Play(kit.Binder(h.API))
		},
		Program: func(h *kit.Harness) { joinWith(h, "n1", h.Driver) },
		Check: func(t testing.TB, h *kit.Harness) {
			if stored := h.Driver.Inventory(); len(stored) != 1 {
				t.Errorf("the driver has %q", stored)
			}
			if len(kit.All[*corev1.PersistentVolume](h.API)) != 1 {
				t.Error("there is not one PersistentVolume")
			}
		},
	})
}
