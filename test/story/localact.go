// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const localFolder = "examples/local/"

func localAct() act {
	return act{
		title: "Local volume",
		says:  "A disk of one node, written down by hand. No provisioner is involved, and ours keep their hands off.",
		steps: []step{
			{title: "A volume with an affinity to its node, and a class that provisions nothing", play: makeLocal},
			{title: "The pod follows the volume", play: followLocal},
			{title: "The sidecars have kept their hands off", play: checkHandsOff},
			{title: "Everything is deleted again; the volume stays, since its policy is Retain", play: clearLocal},
		},
	}
}

func makeLocal(ctx context.Context, s *Scene) error {
	if err := s.apply(ctx, localFolder+"storageclass.yaml", localFolder+"pv.yaml", localFolder+"pvc.yaml"); err != nil {
		return err
	}
	pv, err := s.volume(ctx, "local-pv")
	if err != nil {
		return err
	}
	s.showVolumes(pv)
	return s.awaitConsumer(ctx, "local-pvc")
}

func followLocal(ctx context.Context, s *Scene) error {
	if err := s.apply(ctx, localFolder+"pod.yaml"); err != nil {
		return err
	}
	_, pod, err := s.awaitRunning(ctx, "local-pod")
	if err != nil {
		return err
	}
	pv, err := s.awaitBound(ctx, "local-pvc")
	if err != nil {
		return err
	}
	s.fact("local-pod runs on %s with %s", pod.Spec.NodeName, pv.Name)
	return errors.Join(
		s.check("the claim has the volume that was written by hand", pv.Name == "local-pv", pv.Name),
		s.check("the pod is on the node of the volume", strings.Contains(affinity(pv), "="+pod.Spec.NodeName), pod.Spec.NodeName+" is not in "+affinity(pv)),
	)
}

// checkHandsOff looks for everything that a provisioner leaves on what it works on.
func checkHandsOff(ctx context.Context, s *Scene) error {
	pv, err := s.volume(ctx, "local-pv")
	if err != nil {
		return err
	}
	var traces []string
	for _, f := range pv.Finalizers {
		if f != "kubernetes.io/pv-protection" {
			traces = append(traces, "finalizer "+f)
		}
	}
	if by, ok := pv.Annotations["pv.kubernetes.io/provisioned-by"]; ok {
		traces = append(traces, "provisioned by "+by)
	}
	events, err := s.Stage.Kube.CoreV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing events: %w", err)
	}
	for _, e := range events.Items {
		isOurs := strings.Contains(e.Source.Component+e.ReportingController, s.Cast.Info.Name)
		if isOurs && (e.InvolvedObject.Name == "local-pvc" || e.InvolvedObject.Name == "local-pv") {
			traces = append(traces, "event "+e.Reason)
		}
	}
	left, err := s.leftAtDriver(ctx)
	if err != nil {
		return err
	}
	for _, id := range left {
		traces = append(traces, "stored by the driver: "+id)
	}
	s.fact("traces of the sidecars at the local volume: %d", len(traces))
	return s.check("there is no finalizer, no event and no stored volume of theirs", len(traces) == 0, fmt.Sprintf("there is %q", traces))
}

func clearLocal(ctx context.Context, s *Scene) error {
	if err := s.Cast.Kubelet.End(ctx, namespace, "local-pod"); err != nil {
		return err
	}
	s.Out.command("kubectl delete -f "+localFolder+"pod.yaml", "")
	if err := s.remove(ctx, localFolder+"pvc.yaml"); err != nil {
		return err
	}
	err := s.await(ctx, "the volume is Released, and still there", func(ctx context.Context) (bool, string, error) {
		pv, err := s.volume(ctx, "local-pv")
		if err != nil {
			return false, "", err
		}
		return pv.Status.Phase == corev1.VolumeReleased, "it is " + string(pv.Status.Phase), nil
	})
	if err != nil {
		return err
	}
	if err := s.remove(ctx, localFolder+"pv.yaml"); err != nil {
		return err
	}
	return s.await(ctx, "the volume is gone", func(ctx context.Context) (bool, string, error) {
		_, err := s.volume(ctx, "local-pv")
		return gone(err)
	})
}
