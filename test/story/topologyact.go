// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Keys and values of the examples.
const (
	zoneKey   = "topology.kubernetes.io/zone"
	zoneRight = "cn-hangzhou-b"
	zoneWrong = "cn-hangzhou-d"
	rackKey   = "example.com/rack"
	rackRight = "rack-b"
	rackWrong = "rack-d"
)

// place is one telling of the topology story.
type place struct {
	folder string
	// class, claim and pod are the names in the manifests of the folder.
	class, claim, pod string
	key               string
}

func zoneAct() act {
	p := place{folder: "examples/topology/", class: "tandem-topology", claim: "topology-pvc", pod: "topology-pod", key: zoneKey}
	return topologyAct("Topology", "A volume is made where its pod can run, and the class says which places are allowed.", p)
}

func rackAct() act {
	p := place{folder: "examples/rack/", class: "tandem-rack", claim: "rack-pvc", pod: "rack-pod", key: rackKey}
	return topologyAct("Your own topology key", "Any label can be a place, if the driver names its key: here it is "+rackKey+".", p)
}

func topologyAct(title, says string, p place) act {
	needs := need{what: "topology key " + p.key, met: func(s *Scene) bool {
		return s.Cast.Info.HasTopology() && slices.Contains(s.Cast.Info.TopologyKeys(), p.key)
	}}
	return act{title: title, says: says, steps: []step{
		{title: "Three nodes, one of them for the control plane", needs: needs, play: p.showNodes},
		{title: "A class that allows only a place where no node is: the claim waits for its consumer", needs: needs, play: p.makeClaim},
		{title: "The consumer stays Pending, and the scheduler says why", needs: needs, play: p.stayPending},
		{title: "The class is corrected, the pod comes back, the volume is made where the pod goes", needs: needs, play: p.correct},
		{title: "Everything is deleted again", needs: needs, play: p.clear},
	}}
}

func (p place) showNodes(ctx context.Context, s *Scene) error {
	nodes, err := s.Stage.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	keys := s.Cast.Info.TopologyKeys()
	var rows [][]string
	for _, n := range nodes.Items {
		row := []string{n.Name, orDash(taints(n))}
		for _, key := range keys {
			row = append(row, orDash(n.Labels[key]))
		}
		rows = append(rows, row)
	}
	s.Out.table("NODE TAINTS "+strings.Join(keys, " "), rows...)
	s.fact("%d nodes", len(nodes.Items))
	return nil
}

func taints(n corev1.Node) string {
	var all []string
	for _, t := range n.Spec.Taints {
		all = append(all, t.Key+":"+string(t.Effect))
	}
	return strings.Join(all, ",")
}

func (p place) makeClaim(ctx context.Context, s *Scene) error {
	if err := s.apply(ctx, p.folder+"storageclass.yaml"); err != nil {
		return err
	}
	if _, err := p.showClass(ctx, s); err != nil {
		return err
	}
	if err := s.apply(ctx, p.folder+"pvc.yaml"); err != nil {
		return err
	}
	return s.awaitConsumer(ctx, p.claim)
}

// awaitConsumer waits until it is said of a claim that it waits.
func (s *Scene) awaitConsumer(ctx context.Context, name string) error {
	err := s.await(ctx, fmt.Sprintf("claim %s waits for its first consumer", name), func(ctx context.Context) (bool, string, error) {
		event, err := s.event(ctx, name, "WaitForFirstConsumer")
		return event != nil, "nobody has said so yet", err
	})
	if err != nil {
		return err
	}
	claim, err := s.claim(ctx, name)
	if err != nil {
		return err
	}
	s.showClaims(claim)
	s.fact("%s is %s before its consumer comes", name, claim.Status.Phase)
	return s.check("no volume has been made for it", claim.Spec.VolumeName == "", claim.Spec.VolumeName)
}

// event finds an event of an object by its reason.
func (s *Scene) event(ctx context.Context, name, reason string) (*corev1.Event, error) {
	events, err := s.Stage.Kube.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + name + ",reason=" + reason})
	if err != nil || len(events.Items) == 0 {
		return nil, err
	}
	return &events.Items[0], nil
}

func (p place) showClass(ctx context.Context, s *Scene) (*storagev1.StorageClass, error) {
	class, err := s.Stage.Kube.StorageV1().StorageClasses().Get(ctx, p.class, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the class: %w", err)
	}
	s.showClasses(class)
	return class, nil
}

// reasons are what the scheduler has to say of three nodes of which one is tainted and two have no volume to bind.
var reasons = []string{"0/3 nodes are available", "1 node(s) had untolerated taint", "2 node(s) didn't find available persistent volumes to bind"}

func (p place) stayPending(ctx context.Context, s *Scene) error {
	if err := s.apply(ctx, p.folder+"pod.yaml"); err != nil {
		return err
	}
	var pod *corev1.Pod
	err := s.await(ctx, "the scheduler has an opinion of pod "+p.pod, func(ctx context.Context) (bool, string, error) {
		var err error
		if pod, err = s.pod(ctx, p.pod); err != nil {
			return false, "", err
		}
		said := schedulerSays(pod)
		missing := slices.DeleteFunc(slices.Clone(reasons), func(reason string) bool { return strings.Contains(said, reason) })
		return len(missing) == 0, fmt.Sprintf("it says %q, which lacks %q", said, missing), nil
	})
	if err != nil {
		return err
	}
	s.showPods(pod)
	s.Out.quote("the scheduler", schedulerSays(pod))
	s.fact("%s is %s", p.pod, pod.Status.Phase)
	return s.check("the pod is Pending, and has no node", pod.Status.Phase == corev1.PodPending && pod.Spec.NodeName == "", fmt.Sprint(pod.Status.Phase, " ", pod.Spec.NodeName))
}

func (p place) correct(ctx context.Context, s *Scene) error {
	if err := s.Cast.Kubelet.End(ctx, namespace, p.pod); err != nil {
		return err
	}
	s.Out.command("kubectl delete -f "+p.folder+"pod.yaml", "")
	if err := s.remove(ctx, p.folder+"storageclass.yaml"); err != nil {
		return err
	}
	if err := s.apply(ctx, p.folder+"storageclass-corrected.yaml"); err != nil {
		return err
	}
	class, err := p.showClass(ctx, s)
	if err != nil {
		return err
	}
	if err := s.apply(ctx, p.folder+"pod.yaml"); err != nil {
		return err
	}
	folder, pod, err := s.awaitRunning(ctx, p.pod)
	if err != nil {
		return err
	}
	pv, err := s.awaitBound(ctx, p.claim)
	if err != nil {
		return err
	}
	claim, err := s.claim(ctx, p.claim)
	if err != nil {
		return err
	}
	selected := claim.Annotations["volume.kubernetes.io/selected-node"]
	if err := s.check("the scheduler had selected "+pod.Spec.NodeName+" before the volume was made", selected == pod.Spec.NodeName, selected); err != nil {
		return err
	}
	if err := p.checkPlace(ctx, s, pv, pod.Spec.NodeName, class); err != nil {
		return err
	}
	if err := folder.Write(diary, p.folder); err != nil {
		return err
	}
	return s.expect(folder, diary, p.folder)
}

// checkPlace compares the volume's affinity with the node that was selected, and with what the class allows.
func (p place) checkPlace(ctx context.Context, s *Scene, pv *corev1.PersistentVolume, node string, class *storagev1.StorageClass) error {
	object, err := s.Stage.Kube.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading node %s: %w", node, err)
	}
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return errors.New("the volume has no node affinity")
	}
	allowed := class.AllowedTopologies[0].MatchLabelExpressions[0]
	s.fact("%s is in %s %s, as the class allows: %t", p.pod, allowed.Key, object.Labels[allowed.Key], slices.Contains(allowed.Values, object.Labels[allowed.Key]))
	return errors.Join(
		s.check(fmt.Sprintf("the volume is where node %s can reach it", node), admits(pv.Spec.NodeAffinity.Required, object.Labels), affinity(pv)),
		s.check(fmt.Sprintf("node %s is in a place that the class allows, %s=%s", node, allowed.Key, strings.Join(allowed.Values, "|")),
			slices.Contains(allowed.Values, object.Labels[allowed.Key]), object.Labels[allowed.Key]),
	)
}

// admits is for selectors as provisioners write them: one of the terms, all of its expressions, and only values to be in.
func admits(selector *corev1.NodeSelector, labels map[string]string) bool {
	return slices.ContainsFunc(selector.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		for _, e := range term.MatchExpressions {
			value, ok := labels[e.Key]
			if !ok || e.Operator != corev1.NodeSelectorOpIn || !slices.Contains(e.Values, value) {
				return false
			}
		}
		return len(term.MatchExpressions) > 0
	})
}

func (p place) clear(ctx context.Context, s *Scene) error {
	if err := s.Cast.Kubelet.End(ctx, namespace, p.pod); err != nil {
		return err
	}
	s.Out.command("kubectl delete -f "+p.folder+"pod.yaml", "")
	if err := s.remove(ctx, p.folder+"pvc.yaml"); err != nil {
		return err
	}
	return s.awaitNothing(ctx)
}
