// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/spelling"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// survey is where a class allows volumes, and where nodes are.
type survey struct {
	terms []corev1.TopologySelectorTerm
	nodes []map[string]string
	// keys are those of the driver on its nodes, as far as they are known.
	keys []string
	// raced says that each node has a provisioner of its own, and the first whose node is allowed makes the volume.
	raced bool
}

// misplaced tells that allowedTopologies of the class fit no node. The machines cannot see it: without a node they send
// to the driver what the class says, and with one the scheduler has to choose it first, who tells neither class nor key.
func (l *claimLook) misplaced(ctx context.Context) []hindrance {
	if l.class == nil || len(l.class.AllowedTopologies) == 0 || annotation(l.claim, wellknown.AnnSelectedNode) != "" {
		return nil
	}
	if !waitsForConsumer(l.class) && !l.minds() {
		return nil
	}
	s := survey{terms: l.class.AllowedTopologies, raced: l.rooms.Claim.NodeDeployment}
	if err := list(ctx, l.look, "", metav1.ListOptions{}, func(node *corev1.Node) { s.nodes = append(s.nodes, node.Labels) }); err != nil {
		return nil // the reader remembers
	}
	l.client.apart(func() { // without the driver's keys those of the nodes have to do
		_ = list(ctx, l.look, "", metav1.ListOptions{}, func(node *storagev1.CSINode) { s.addKeys(node, l.Driver.Name) })
	})
	if !s.isNowhere() {
		for _, key := range s.unknown() {
			l.note("No node has a label %s, which allowedTopologies of StorageClass %s name%s: what they say with it allows no node.", key, l.class.Name, s.meant(key))
		}
		return nil
	}
	return []hindrance{s.hindrance(l.class)}
}

// minds tells that places matter to the driver even when no node is chosen. Those that were once part of Kubernetes have their
// labels translated before they are looked at.
func (l *claimLook) minds() bool {
	return l.rooms.Claim.Topology && !strings.HasPrefix(l.class.Provisioner, inTree) && (!l.Driver.Asked || l.Driver.Capabilities.HasTopology())
}

func (s *survey) addKeys(node *storagev1.CSINode, driver string) {
	for _, d := range node.Spec.Drivers {
		for _, key := range d.TopologyKeys {
			if d.Name == driver && !slices.Contains(s.keys, key) {
				s.keys = append(s.keys, key)
			}
		}
	}
}

// isNowhere tells that no node is in any of the terms.
func (s *survey) isNowhere() bool {
	return !slices.ContainsFunc(s.nodes, func(labels map[string]string) bool {
		return slices.ContainsFunc(s.terms, func(t corev1.TopologySelectorTerm) bool { return fits(t, labels) })
	})
}

// fits is what the scheduler says: an empty term fits nothing.
func fits(term corev1.TopologySelectorTerm, labels map[string]string) bool {
	for _, e := range term.MatchLabelExpressions {
		if value, ok := labels[e.Key]; !ok || !slices.Contains(e.Values, value) {
			return false
		}
	}
	return len(term.MatchLabelExpressions) > 0
}

// asked are the keys that the terms name.
func (s *survey) asked() []string {
	var keys []string
	for _, t := range s.terms {
		for _, e := range t.MatchLabelExpressions {
			keys = append(keys, e.Key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// unknown are the keys that no node has a label of.
func (s *survey) unknown() []string {
	return slices.DeleteFunc(s.asked(), func(key string) bool {
		return slices.ContainsFunc(s.nodes, func(labels map[string]string) bool { _, ok := labels[key]; return ok })
	})
}

// known are the keys that could have been meant: the driver's, or else all that nodes have.
func (s *survey) known() []string {
	if len(s.keys) > 0 {
		return slices.Sorted(slices.Values(s.keys))
	}
	all := map[string]bool{}
	for _, labels := range s.nodes {
		for key := range labels {
			all[key] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func (s *survey) meant(key string) string {
	if meant := spelling.Nearest(key, s.known()); meant != "" {
		return fmt.Sprintf(" (did you mean %s?)", meant)
	}
	return ""
}

// where are the places that nodes are in, by the keys that are asked for or else by those that could have been.
func (s *survey) where() string {
	keys := slices.DeleteFunc(s.asked(), func(key string) bool { return slices.Contains(s.unknown(), key) })
	if len(keys) == 0 {
		keys = s.keys
	}
	var segments []topology.Segment
	for _, labels := range s.nodes {
		here := map[string]string{}
		for _, key := range keys {
			if value, ok := labels[key]; ok {
				here[key] = value
			}
		}
		if len(here) > 0 {
			segments = append(segments, topology.SegmentOf(here))
		}
	}
	slices.SortFunc(segments, topology.Segment.Compare)
	var texts []string
	for _, segment := range segments {
		texts = append(texts, segment.String())
	}
	return few(slices.Compact(texts))
}

// text is what the class asks for.
func (s *survey) text() string {
	var terms []string
	for _, t := range s.terms {
		var parts []string
		for _, e := range t.MatchLabelExpressions {
			parts = append(parts, fmt.Sprintf("%s in (%s)", e.Key, strings.Join(e.Values, ", ")))
		}
		terms = append(terms, "{"+strings.Join(parts, ", ")+"}")
	}
	return few(terms)
}

func (s *survey) hindrance(class *storagev1.StorageClass) hindrance {
	h := hindrance{alone: true}
	so := "the driver is asked for a place where no node is"
	switch {
	case waitsForConsumer(class):
		so = "no pod that uses the claim finds a node"
	case s.raced:
		so = "the provisioner of no node takes the claim"
	default:
		h.alone = false
	}
	h.why = fmt.Sprintf("allowedTopologies of StorageClass %s fit no node, so that %s: %s", class.Name, so, s.text())
	unknown := s.unknown()
	for _, key := range unknown {
		h.why += fmt.Sprintf("; no node has a label %s%s", key, s.meant(key))
	}
	if where := s.where(); where != "" {
		h.why += "; the nodes have " + where
	}
	h.advice = []string{fmt.Sprintf("change allowedTopologies of StorageClass %s, which can be done in place: kubectl edit storageclass %[1]s; the claim goes on by itself", class.Name)}
	switch {
	case len(unknown) == 0:
	case len(s.keys) > 0:
		h.advice = append(h.advice, "the driver's keys are "+few(s.known()))
	default:
		h.advice = append(h.advice, "labels that nodes have are "+few(s.known()))
	}
	return h
}
