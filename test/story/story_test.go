// SPDX-License-Identifier: Apache-2.0

package story

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/test/stage"
)

// A name that is misspelt in a step would be found only when the story is played.
func TestEveryExampleThatTheStoryNamesIsThere(t *testing.T) {
	sources, err := filepath.Glob("*act.go")
	if err != nil || len(sources) == 0 {
		t.Fatal("no acts: ", err)
	}
	named := regexp.MustCompile(`"(examples/[a-z/-]+\.yaml)"`)
	count := 0
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range named.FindAllStringSubmatch(string(text), -1) {
			count++
			if _, err := os.Stat(filepath.Join("..", "..", match[1])); err != nil {
				t.Error(err)
			}
		}
	}
	if count == 0 {
		t.Error("the story names no example at all")
	}
}

func TestAdapt(t *testing.T) {
	manifest := []byte("provisioner: tandem.csi.example\nkey: topology.kubernetes.io/zone\nvalues: [cn-hangzhou-b]\n")
	zoned := stage.Info{Name: "other.example", Segments: map[string]string{"other/zone": "z"}}
	tests := []struct {
		name string
		info stage.Info
		want string
	}{
		{"our own driver", stage.Info{Name: exampleDriver}, string(manifest)},
		{"another driver without topology", stage.Info{Name: "other.example"}, strings.Replace(string(manifest), exampleDriver, "other.example", 1)},
		{"a driver that does not claim its topology", zoned, strings.Replace(string(manifest), exampleDriver, "other.example", 1)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &Scene{Cast: &stage.Cast{Info: tt.info}}
			got, changes := s.adapt(manifest)
			if string(got) != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			if (changes == "") != (tt.want == string(manifest)) {
				t.Errorf("says %q of it", changes)
			}
		})
	}
}

// TestOnlyWhatTheDriverCan: catches a story that speaks of calls which the driver never got, and takes away what was never there.
func TestOnlyWhatTheDriverCan(t *testing.T) {
	for _, c := range []struct {
		features         []string
		calls, pods, all string
	}{
		{nil, "NodePublishVolume", "disk-pod", "examples/pvc.yaml"},
		{[]string{"CREATE_DELETE_SNAPSHOT"}, "NodePublishVolume", "disk-pod restore-pod", "examples/restore.yaml examples/pvc.yaml"},
		{[]string{"STAGE_UNSTAGE_VOLUME", "CREATE_DELETE_SNAPSHOT", "CLONE_VOLUME"}, "NodeStageVolume and NodePublishVolume",
			"disk-pod restore-pod clone-pod", "examples/clone.yaml examples/restore.yaml examples/pvc.yaml"},
	} {
		s := &Scene{Cast: &stage.Cast{Info: stage.Info{}.With(c.features...)}}
		pods, manifests := s.disks()
		if got := []string{s.calls(), strings.Join(pods, " "), strings.Join(manifests, " ")}; !slices.Equal(got, []string{c.calls, c.pods, c.all}) {
			t.Errorf("%v: %q", c.features, got)
		}
	}
}

func TestFit(t *testing.T) {
	manifest := func(driver, zone, rack string) string {
		return "driver: " + driver + "\nkey: topology.kubernetes.io/zone\nvalues: [" + zone + "]\nkey: example.com/rack\nvalues: [" + rack + "]\n"
	}
	for _, tt := range []struct {
		name, driver string
		segments     map[string]string
		right, wrong string
	}{
		{"ours", exampleDriver, map[string]string{zoneKey: zoneRight, rackKey: rackRight}, manifest(exampleDriver, zoneRight, rackRight), manifest(exampleDriver, zoneWrong, rackWrong)},
		{"ours in another zone", exampleDriver, map[string]string{zoneKey: "x"}, manifest(exampleDriver, "x", rackRight), manifest(exampleDriver, "x-elsewhere", rackWrong)},
		{"another with both keys", "o.example", map[string]string{zoneKey: "x", rackKey: "7"}, manifest("o.example", "x", "7"), manifest("o.example", "x-elsewhere", "7-elsewhere")},
		{"another with keys of its own", "o.example", map[string]string{"zone": "a"}, manifest("o.example", zoneRight, rackRight), manifest("o.example", zoneWrong, rackWrong)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := fit(manifest(exampleDriver, zoneRight, rackRight), tt.driver, tt.segments); got != tt.right {
				t.Errorf("the right place becomes\n%s", got)
			}
			if got := fit(manifest(exampleDriver, zoneWrong, rackWrong), tt.driver, tt.segments); got != tt.wrong {
				t.Errorf("the wrong place becomes\n%s", got)
			}
		})
	}
}

func TestAdmits(t *testing.T) {
	in := func(key string, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	term := func(all ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: all}
	}
	labels := map[string]string{"zone": "b", "rack": "2"}
	tests := []struct {
		name  string
		terms []corev1.NodeSelectorTerm
		want  bool
	}{
		{"all of a term", []corev1.NodeSelectorTerm{term(in("zone", "b"), in("rack", "2"))}, true},
		{"one of the values", []corev1.NodeSelectorTerm{term(in("zone", "a", "b"))}, true},
		{"one of the terms", []corev1.NodeSelectorTerm{term(in("zone", "a")), term(in("rack", "2"))}, true},
		{"half of a term", []corev1.NodeSelectorTerm{term(in("zone", "b"), in("rack", "1"))}, false},
		{"a label that is not there", []corev1.NodeSelectorTerm{term(in("host", "x"))}, false},
		{"a term that asks for nothing admits nobody", []corev1.NodeSelectorTerm{term()}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := admits(&corev1.NodeSelector{NodeSelectorTerms: tt.terms}, labels); got != tt.want {
				t.Errorf("admits: %t", got)
			}
		})
	}
}

func TestNodesAreThoseOfTheStory(t *testing.T) {
	var tainted, workers []string
	for _, n := range Nodes(OneZone) {
		if len(n.Taints) > 0 {
			tainted = append(tainted, n.Name)
			continue
		}
		workers = append(workers, n.Name)
		if n.Labels[zoneKey] != zoneRight {
			t.Errorf("worker %s is in zone %q", n.Name, n.Labels[zoneKey])
		}
	}
	slices.Sort(workers)
	if len(tainted) != 1 || !slices.Equal(workers, []string{"worker-1", "worker-2"}) {
		t.Errorf("tainted %q, workers %q", tainted, workers)
	}
}
