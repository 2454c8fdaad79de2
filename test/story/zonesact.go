// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	zonesFolder = "examples/zones/"
	// zoneOther is where the second of the real nodes is.
	zoneOther = "cn-hangzhou-a"
	rackOther = "rack-a"
	// filler takes the room of a zone behind everybody's back, but for what is too little for a claim.
	filler = "filler"
	margin = 1 << 29
)

// zonesAct is for nodes in two zones that run their pods: nobody else would see a pod that is started again.
func zonesAct() act {
	return act{
		title: "Two zones",
		says:  "Pods and their volumes are spread over two zones, come back to where their data is, and move on where there is no room.",
		steps: []step{
			{title: "A StatefulSet with one pod, and one volume, in each zone", play: spreadSet},
			{title: "A pod of it ends, and comes back to its data", play: returnToData},
			{title: "The set and its claims are deleted", play: clearSet},
			{title: "The zone that a pod prefers is full: it moves to the other one", play: moveOn},
			{title: "Everything is deleted again", play: clearMoved},
		},
	}
}

func member(i int) (pod, claim string) {
	return fmt.Sprint("spread-", i), fmt.Sprint("disk-spread-", i)
}

func spreadSet(ctx context.Context, s *Scene) error {
	if err := s.apply(ctx, zonesFolder+"storageclass.yaml", zonesFolder+"service.yaml", zonesFolder+"statefulset.yaml"); err != nil {
		return err
	}
	zones := map[string]bool{}
	for i := range 2 {
		name, claim := member(i)
		if err := s.awaitPod(ctx, name); err != nil {
			return err
		}
		folder, pod, err := s.awaitRunning(ctx, name)
		if err != nil {
			return err
		}
		pv, err := s.awaitBound(ctx, claim)
		if err != nil {
			return err
		}
		node, err := s.Stage.Kube.CoreV1().Nodes().Get(ctx, pod.Spec.NodeName, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading node %s: %w", pod.Spec.NodeName, err)
		}
		zone := node.Labels[zoneKey]
		zones[zone] = true
		if err := s.check(name+" and its volume are in zone "+zone, strings.Contains(affinity(pv), zoneKey+"="+zone), affinity(pv)); err != nil {
			return err
		}
		if err := folder.Write(diary, name); err != nil {
			return err
		}
	}
	s.fact("the set is in %d zones", len(zones))
	return s.check("the two are in different zones", len(zones) == 2, fmt.Sprint(zones))
}

// awaitPod waits for a controller to make a pod.
func (s *Scene) awaitPod(ctx context.Context, name string) error {
	return s.await(ctx, "there is a pod "+name, func(ctx context.Context) (bool, string, error) {
		pod, err := s.pod(ctx, name)
		return err == nil && pod.DeletionTimestamp == nil, "nobody has made it", err
	})
}

func returnToData(ctx context.Context, s *Scene) error {
	name, _ := member(1)
	before, err := s.pod(ctx, name)
	if err != nil {
		return err
	}
	s.Out.command("kubectl delete pod "+name, "")
	if err := s.Cast.Kubelet.End(ctx, namespace, name); err != nil {
		return err
	}
	if err := s.awaitPod(ctx, name); err != nil {
		return err
	}
	folder, after, err := s.awaitRunning(ctx, name)
	if err != nil {
		return err
	}
	return errors.Join(
		s.check("it is another pod, on the same node", after.UID != before.UID && after.Spec.NodeName == before.Spec.NodeName, after.Spec.NodeName),
		s.expect(folder, diary, name),
	)
}

func clearSet(ctx context.Context, s *Scene) error {
	if err := s.remove(ctx, zonesFolder+"statefulset.yaml", zonesFolder+"service.yaml"); err != nil {
		return err
	}
	for i := range 2 {
		name, claim := member(i)
		if err := s.await(ctx, "pod "+name+" is gone", func(ctx context.Context) (bool, string, error) {
			_, err := s.pod(ctx, name)
			return gone(err)
		}); err != nil {
			return err
		}
		s.Out.command("kubectl delete pvc "+claim, "")
		if err := s.Stage.Kube.CoreV1().PersistentVolumeClaims(namespace).Delete(ctx, claim, metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("deleting claim %s: %w", claim, err)
		}
	}
	return s.awaitNothing(ctx)
}

func moveOn(ctx context.Context, s *Scene) error {
	segment := Topology(TwoZones)["worker-1"]
	if err := s.Cast.MakeVolume(ctx, filler, segment, Pool-margin); err != nil {
		return err
	}
	s.Out.Say("somebody takes all the room in zone %s, and tells nobody", segment[zoneKey])
	if err := s.apply(ctx, zonesFolder+"pvc.yaml", zonesFolder+"pod.yaml"); err != nil {
		return err
	}
	folder, pod, err := s.awaitRunning(ctx, "moving-pod")
	if err != nil {
		return err
	}
	pv, err := s.awaitBound(ctx, "moving-pvc")
	if err != nil {
		return err
	}
	if warning := s.lastWarning(ctx, "moving-pvc"); warning != "" {
		s.Out.quote("the provisioner", warning)
	}
	s.fact("moving-pod is on %s", pod.Spec.NodeName)
	if err := folder.Write(diary, pod.Name); err != nil {
		return err
	}
	return errors.Join(
		s.check("the pod is in the other zone", pod.Spec.NodeName == "worker-2", pod.Spec.NodeName),
		s.check("and so is its volume", strings.Contains(affinity(pv), zoneKey+"="+zoneOther), affinity(pv)),
		s.expect(folder, diary, pod.Name),
	)
}

func clearMoved(ctx context.Context, s *Scene) error {
	if err := s.Cast.Kubelet.End(ctx, namespace, "moving-pod"); err != nil {
		return err
	}
	s.Out.command("kubectl delete -f "+zonesFolder+"pod.yaml", "")
	if err := s.Cast.Control.Forget(ctx, filler); err != nil {
		return fmt.Errorf("giving the room back: %w", err)
	}
	if err := s.remove(ctx, zonesFolder+"pvc.yaml"); err != nil {
		return err
	}
	return s.awaitNothing(ctx)
}
