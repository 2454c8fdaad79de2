// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Node describes a simulated node: the API objects that a kubelet and its drivers would have written. Pods are
// scheduled to it and never run.
type Node struct {
	Name          string
	Labels        map[string]string
	Taints        []corev1.Taint
	Unschedulable bool
	Drivers       []NodeDriver
	// Allocatable overrides amounts of the defaults: 64 CPUs, 256Gi of memory, 1Ti of ephemeral storage, 500 pods.
	Allocatable corev1.ResourceList
}

// NodeDriver is what a CSI driver says about itself when it registers on a node.
type NodeDriver struct {
	Name string
	// NodeID is the node's name when empty.
	NodeID       string
	TopologyKeys []string
	// VolumeLimit is how many volumes the scheduler may put on the node; nil is no limit.
	VolumeLimit *int32
}

// AddNode creates a Node that is ready, and its CSINode.
func (c *Cluster) AddNode(ctx context.Context, node Node) error {
	// A node may be created with its status. Admission gives it a not-ready taint all the same, which keeps pods away.
	object := buildNode(node)
	object.Status = buildNodeStatus(node, time.Now())
	created, err := c.clientset.CoreV1().Nodes().Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating node %s: %w", node.Name, err)
	}
	// The CSINode comes before the node can be scheduled to: else a pod could land there before its drivers are known.
	_, err = c.clientset.StorageV1().CSINodes().Create(ctx, buildCSINode(node, created.UID), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating CSINode %s: %w", node.Name, err)
	}
	// The controller that lifts that taint is off.
	return c.patchNode(ctx, node.Name, map[string]any{"spec": map[string]any{"taints": node.Taints}})
}

// UpdateNodeLabels sets labels of a node; a nil value removes one.
func (c *Cluster) UpdateNodeLabels(ctx context.Context, name string, labels map[string]*string) error {
	return c.patchNode(ctx, name, map[string]any{"metadata": map[string]any{"labels": labels}})
}

// RemoveNode deletes a node and its CSINode, as when a machine is gone for good.
func (c *Cluster) RemoveNode(ctx context.Context, name string) error {
	nodeErr := c.clientset.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
	err := c.clientset.StorageV1().CSINodes().Delete(ctx, name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		// The garbage collector may have been faster: the Node owns the CSINode.
		err = nil
	}
	if err := errors.Join(nodeErr, err); err != nil {
		return fmt.Errorf("removing node %s: %w", name, err)
	}
	return nil
}

func (c *Cluster) patchNode(ctx context.Context, name string, content map[string]any) error {
	body, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encoding a patch of node %s: %w", name, err)
	}
	_, err = c.clientset.CoreV1().Nodes().
		Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("patching node %s: %w", name, err)
	}
	return nil
}

func buildNode(node Node) *corev1.Node {
	labels := map[string]string{
		corev1.LabelHostname:   node.Name,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: "amd64",
	}
	maps.Copy(labels, node.Labels)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: labels},
		Spec:       corev1.NodeSpec{Unschedulable: node.Unschedulable},
	}
}

func buildNodeStatus(node Node, now time.Time) corev1.NodeStatus {
	allocatable := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("64"),
		corev1.ResourceMemory:           resource.MustParse("256Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
		corev1.ResourcePods:             resource.MustParse("500"),
	}
	maps.Copy(allocatable, node.Allocatable)
	return corev1.NodeStatus{
		Capacity:    allocatable,
		Allocatable: allocatable,
		Conditions: []corev1.NodeCondition{{
			Type:               corev1.NodeReady,
			Status:             corev1.ConditionTrue,
			Reason:             "Simulated",
			Message:            "no kubelet runs here",
			LastHeartbeatTime:  metav1.NewTime(now),
			LastTransitionTime: metav1.NewTime(now),
		}},
	}
}

func buildCSINode(node Node, uid types.UID) *storagev1.CSINode {
	object := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{
		Name: node.Name,
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "Node", Name: node.Name, UID: uid,
		}},
	}}
	object.Spec.Drivers = []storagev1.CSINodeDriver{}
	for _, driver := range node.Drivers {
		entry := storagev1.CSINodeDriver{
			Name: driver.Name, NodeID: driver.NodeID, TopologyKeys: driver.TopologyKeys,
		}
		if entry.NodeID == "" {
			entry.NodeID = node.Name
		}
		if driver.VolumeLimit != nil {
			entry.Allocatable = &storagev1.VolumeNodeResources{Count: driver.VolumeLimit}
		}
		object.Spec.Drivers = append(object.Spec.Drivers, entry)
	}
	return object
}
