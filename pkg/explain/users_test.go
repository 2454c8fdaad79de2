// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// pod is one that uses the claim "data", and that nobody has looked at.
func pod(name string, mods ...func(*kube.Pod)) *kube.Pod {
	p := &kube.Pod{ObjectMeta: meta1(name)}
	p.Namespace, p.UID = kit.Namespace, types.UID("uid-of-"+name)
	p.Spec.SchedulerName = "default-scheduler"
	p.Spec.Volumes = []kube.PodVolume{{Name: "token"}, {Name: "disk", Claim: kube.PodClaim{ClaimName: "data"}}}
	p.Status.Phase = corev1.PodPending
	for _, mod := range mods {
		mod(p)
	}
	return p
}

func onNode(node string) func(*kube.Pod) { return func(p *kube.Pod) { p.Spec.NodeName = node } }

func inPhase(phase corev1.PodPhase) func(*kube.Pod) {
	return func(p *kube.Pod) { p.Status.Phase = phase }
}

func ending(p *kube.Pod) {
	kit.Deleted(p)
	p.Finalizers = []string{"a/b"}
}

func refused(p *kube.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/2 nodes are available"}}
}

// machine is a node whose condition and whose kubelet's last sign are so old.
func machine(name string, ready corev1.ConditionStatus, heard time.Duration) []kube.Object {
	node := kit.Node(name, map[string]string{"zone": name})
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, Message: "Kubelet stopped posting node status.", LastTransitionTime: metav1.NewTime(kit.Start)}}
	lease := &coordinationv1.Lease{ObjectMeta: meta1(name)}
	lease.Namespace = corev1.NamespaceNodeLease
	renewed := metav1.NewMicroTime(kit.Start.Add(-heard))
	lease.Spec.RenewTime, lease.Spec.LeaseDurationSeconds = &renewed, kit.Ptr(int32(40))
	return []kube.Object{node, lease}
}

func inZone(zones ...string) func(*corev1.PersistentVolume) {
	return func(v *corev1.PersistentVolume) {
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: zones}}},
		}}}
	}
}

// used is the claim with its volume, whose access mode may be another.
func used(mode corev1.PersistentVolumeAccessMode, more ...kube.Object) []kube.Object {
	objects := append(bound(), more...)
	objects[0].(*corev1.PersistentVolumeClaim).Spec.AccessModes = []corev1.PersistentVolumeAccessMode{mode}
	return objects
}

// TestUsers goes through what pods wait for whose claim is bound. Each row catches an explanation that ends with the claim: it says
// that nothing is in the way, and the pod does not start.
func TestUsers(t *testing.T) {
	healthy, dark, unready := machine("n1", corev1.ConditionTrue, 0), machine("n1", corev1.ConditionTrue, time.Minute), machine("n1", corev1.ConditionUnknown, 0)
	attachment := func(node string, status storagev1.VolumeAttachmentStatus) kube.Object {
		a := kit.Attachment("at-"+node, "pv", node)
		a.Status = status
		return a
	}
	const rwo, rwop = corev1.ReadWriteOnce, corev1.ReadWriteOncePod
	for _, c := range []struct {
		name    string
		objects []kube.Object
		// want is what the text has between "Pods that use the claim" and what comes next, in one line.
		want string
	}{
		{"one runs", append(used(rwo, pod("a", onNode("n1"), inPhase(corev1.PodRunning))), healthy...), "a runs on node n1"},
		{"one has ended", used(rwo, pod("a", onNode("n1"), inPhase(corev1.PodSucceeded))), "a has ended (Succeeded)"},
		{"no scheduler", used(rwo, pod("a")),
			"a is on no node yet because no scheduler has said anything about it what helps: see that scheduler default-scheduler runs"},
		{"the scheduler says why not", used(rwo, pod("a", refused)), "a is on no node yet because Unschedulable: 0/2 nodes are available"},
		{"kept out by another", append(used(rwop, pod("a", onNode("n1"), inPhase(corev1.PodRunning)), pod("b", refused)), healthy...),
			"b is on no node yet because the claim is for one pod at a time (ReadWriteOncePod), and pod a on node n1 has it " +
				"because Unschedulable: 0/2 nodes are available what helps: end pod a; or use ReadWriteOnce in a new claim, which pods of one node can share a runs on node n1"},
		{"one that has ended keeps nobody out", used(rwop, pod("a", onNode("n1"), inPhase(corev1.PodFailed)), pod("b", refused)),
			"b is on no node yet because Unschedulable: 0/2 nodes are available a has ended (Failed)"},
		{"two may share", append(used(rwo, pod("a", onNode("n1"), inPhase(corev1.PodRunning)), pod("b", refused)), healthy...),
			"b is on no node yet because Unschedulable: 0/2 nodes are available a runs on node n1"},
		{"the node is silent", append(used(rwo, pod("a", onNode("n1"), inPhase(corev1.PodRunning))), dark...),
			"a was running on node n1 because nothing has been heard of the kubelet of node n1 for 60s what helps: bring node n1 back: its pods and their volumes go on by themselves"},
		{"sent to a silent node", append(used(rwo, pod("a", onNode("n1"))), dark...),
			"a is on node n1 and has not started because nothing has been heard of the kubelet of node n1 for 60s what helps: bring node n1 back: its pods and their volumes go on by themselves"},
		{"the node is not ready, and the pod is to go", append(used(rwo, pod("a", onNode("n1"), inPhase(corev1.PodRunning), ending)), unready...),
			"a was running on node n1, being deleted for a moment because node n1 has not been ready for a moment: Kubelet stopped posting node status. " +
				"what helps: bring node n1 back: its pods and their volumes go on by themselves what helps: only if node n1 is certainly off and stays so: " +
				"kubectl taint nodes n1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute, which ends its pods and detaches their volumes"},
		{"the node is gone", used(rwo, pod("a", onNode("n1"), inPhase(corev1.PodRunning))),
			"a was running on node n1 because node n1 does not exist any more what helps: bring node n1 back: its pods and their volumes go on by themselves"},
		{"attached elsewhere", append(used(rwo, pod("a", onNode("n1")), attachment("n2", storagev1.VolumeAttachmentStatus{Attached: true}), kit.Node("n2", nil)), healthy...),
			"a is on node n1 and has not started because its volume is still attached to node n2"},
		{"attached elsewhere, and shared", append(used(corev1.ReadWriteMany, pod("a", onNode("n1")), attachment("n2", storagev1.VolumeAttachmentStatus{Attached: true})), healthy...),
			"a is on node n1 and has not started"},
		{"attached to a node that is gone", append(used(rwo, pod("a", onNode("n1")), attachment("n2", storagev1.VolumeAttachmentStatus{Attached: true})), healthy...),
			"a is on node n1 and has not started because its volume is still attached to node n2 because node n2 does not exist any more what helps: only if node n2 is certainly off and stays so: " +
				"kubectl taint nodes n2 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute, which ends its pods and detaches their volumes"},
		{"to be attached", append(used(rwo, pod("a", onNode("n1")), attachment("n1", storagev1.VolumeAttachmentStatus{})), healthy...),
			"a is on node n1 and has not started because its volume is not attached to the node yet, which VolumeAttachment at-n1 asks for " +
				"what helps: see that the external-attacher of driver " + kit.DriverName + " runs, and what its log says"},
		{"cannot be attached", append(used(rwo, pod("a", onNode("n1")), attachment("n1", storagev1.VolumeAttachmentStatus{AttachError: &storagev1.VolumeError{Message: "too many disks"}})), healthy...),
			"a is on node n1 and has not started because VolumeAttachment at-n1: too many disks"},
		{"no image", append(used(rwo, pod("a", onNode("n1"), func(p *kube.Pod) {
			p.Status.Containers = []kube.PodContainer{{Name: "app", State: kube.PodContainerState{Waiting: kube.PodReason{Reason: "ErrImagePull", Message: "no such image"}}}}
		})), healthy...), "a is on node n1 and has not started because container app waits, ErrImagePull: no such image"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(c.objects...)
			text := written(t, explainClaim(t, h, askedDriver(flat())), "text")
			if got := paragraph(text, "Pods that use the claim"); got != c.want {
				t.Errorf("says\n%s, want\n%s in\n%s", got, c.want, text)
			}
		})
	}
}

// paragraph is what stands below a title, in one line.
func paragraph(text, title string) string {
	_, after, _ := strings.Cut(text, "\n"+title+"\n")
	found, _, _ := strings.Cut(after, "\n\n")
	return strings.Join(strings.Fields(found), " ")
}

// TestUsersAndPlaces: a pod that no node may take hears of the nodes that can reach its volume.
func TestUsersAndPlaces(t *testing.T) {
	cordoned := kit.Node("n2", map[string]string{"zone": "n2"})
	cordoned.Spec.Unschedulable = true
	for _, c := range []struct {
		name  string
		zones []string
		want  string
	}{
		{"one that is there", []string{"n1"}, "on nodes with {zone: n1}: n1"},
		{"one that is cordoned", []string{"n2"}, "on nodes with {zone: n2}: n2 (cordoned: it takes no new pods) what helps: let one of these nodes take pods again"},
		{"one that is silent", []string{"n3"}, "on nodes with {zone: n3}: n3 (nothing has been heard of the kubelet of node n3 for 60s) what helps: let one of these nodes take pods again"},
		{"several", []string{"n1", "n2"}, "on nodes with {zone: n1} or {zone: n2}: n1, n2 (cordoned: it takes no new pods)"},
		{"none", []string{"n4"}, "on nodes with {zone: n4}, and there is no such node what helps: bring a node back that had these labels: the data is there and nowhere else"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := kit.New(t)
			h.Put(append(bound(inZone(c.zones...)), pod("a", refused), cordoned)...)
			h.Put(append(machine("n1", corev1.ConditionTrue, 0), machine("n3", corev1.ConditionTrue, time.Minute)...)...)
			text := written(t, explainClaim(t, h, askedDriver(placed())), "text")
			want := "a is on no node yet because Unschedulable: 0/2 nodes are available because its volume can be used only " + c.want
			if got := paragraph(text, "Pods that use the claim"); got != want {
				t.Errorf("says\n%s, want\n%s", got, want)
			}
		})
	}
}

// TestUsersEvents: of the events of a pod that does not start the last warning is told, and no other pod's.
func TestUsersEvents(t *testing.T) {
	h := kit.New(t)
	a := pod("a", onNode("n1"))
	h.Put(append(bound(), a, pod("other", func(p *kube.Pod) { p.Spec.Volumes[1].Claim.ClaimName = "another" }))...)
	h.Put(machine("n1", corev1.ConditionTrue, 0)...)
	normal := eventOf(h, "e3", a, time.Second, "Scheduled", "sent to n1")
	normal.Type = corev1.EventTypeNormal
	h.Put(eventOf(h, "e1", a, time.Hour, "FailedMount", "older"), eventOf(h, "e2", a, time.Minute, "FailedMount", "newer"), normal,
		eventOf(h, "e4", pod("other"), time.Second, "FailedMount", "of another"))
	text := written(t, explainClaim(t, h, askedDriver(flat())), "text")
	if got, want := paragraph(text, "Pods that use the claim"), "a is on node n1 and has not started because FailedMount, 60s ago: newer"; got != want {
		t.Errorf("says %s, want %s", got, want)
	}
	if !strings.Contains(text, "used by   pod a\n") {
		t.Error(text)
	}
}

// TestUsersOfWaitingClaim: a claim that waits for its first pod names the one that is there and that no node may take. Catches advice
// to start a pod, with no word about the one that was started.
func TestUsersOfWaitingClaim(t *testing.T) {
	h := kit.New(t)
	h.Put(kit.Claim("data"), kit.Class(kit.ClassName, kit.WaitForConsumer), pod("a", refused))
	text := written(t, explainClaim(t, h, askedDriver(flat())), "text")
	if got, want := paragraph(text, "Pods that use the claim"), "a is on no node yet because Unschedulable: 0/2 nodes are available"; got != want {
		t.Errorf("says %s, want %s", got, want)
	}
	if !strings.Contains(text, "what helps: see below why pod a is on no node") || strings.Contains(text, "start a pod") {
		t.Errorf("a pod is there:\n%s", text)
	}
	for name, c := range map[string]struct {
		pod  *kube.Pod
		says string
	}{
		"past the scheduler": {pod("a", onNode("n1")), "spec.nodeSelector kubernetes.io/hostname=n1 instead"},
		"ended":              {pod("a", inPhase(corev1.PodSucceeded)), "start a pod that uses the claim"},
	} {
		h := kit.New(t)
		h.Put(kit.Claim("data", unclaimed), kit.Class(kit.ClassName, kit.WaitForConsumer), c.pod)
		if m := explainClaim(t, h, askedDriver(flat())).Machines[0]; !strings.Contains(strings.Join(m.Advice, "; "), c.says) {
			t.Errorf("%s: %q", name, m.Advice)
		}
	}
	bare := kit.New(t)
	bare.Put(kit.Claim("data"), kit.Class(kit.ClassName, kit.WaitForConsumer))
	if text := written(t, explainClaim(t, bare, askedDriver(flat())), "text"); !strings.Contains(text, "used by   no pod\n") {
		t.Error(text)
	}
	soon := kit.New(t)
	soon.Put(kit.Claim("data"), kit.Class(kit.ClassName), pod("a", refused))
	if report := explainClaim(t, soon, askedDriver(flat())); len(report.Users) > 0 {
		t.Errorf("a claim that is made at once is held up by nobody's pod: %+v", report.Users)
	}
}

// TestUsersGoingClaim: a claim that cannot go because of pods names them, those that have ended too.
func TestUsersGoingClaim(t *testing.T) {
	h := kit.New(t)
	objects := append(bound(), pod("a", onNode("n1"), inPhase(corev1.PodSucceeded)))
	kit.Deleted(objects[0])
	h.Put(objects...)
	text := written(t, explainClaim(t, h, askedDriver(flat())), "text")
	if got, want := paragraph(text, "Pods that use the claim"), "a has ended (Succeeded) what helps: delete pod a: also one that has ended holds a claim that is to go"; got != want {
		t.Errorf("says %s, want %s", got, want)
	}
}

// TestManyUsers: a claim of many pods names those that wait first, and does not read the node of each.
func TestManyUsers(t *testing.T) {
	h := kit.New(t)
	objects := used(corev1.ReadWriteMany, pod("z", refused))
	for i := range 20 {
		objects = append(objects, pod(fmt.Sprintf("p%02d", i), onNode(fmt.Sprintf("n%02d", i)), inPhase(corev1.PodRunning)))
	}
	h.Put(objects...)
	report := explainClaim(t, h, askedDriver(flat()))
	if len(report.Users) != shown || report.Users[0].Pod != "z" || report.Users[1].Pod != "p00" {
		t.Errorf("%+v", report.Users)
	}
	if last := report.Object.State[len(report.Object.State)-1]; !strings.HasPrefix(last.Value, "21 pods: z, p00, ") || !strings.HasSuffix(last.Value, " and 13 more") {
		t.Errorf("%+v", last)
	}
	nodes := 0
	for _, r := range h.API.Requests() {
		if r.Resource == "nodes" {
			nodes++
		}
	}
	if nodes > shown {
		t.Errorf("%d nodes were read", nodes)
	}
}

// TestUsersRights: what the user may not read is named, once, and what could be read is told.
func TestUsersRights(t *testing.T) {
	for _, c := range []struct {
		resource, verb, note, pods string
	}{
		{"pods", "list", "Which pods use the claim is not shown: listing pods: not allowed to you.", ""},
		{"nodes", "get", "Whether something else keeps these pods is not known: reading nodes n1: not allowed to you.", "a is on node n1 and has not started b runs on node n1"},
		{"leases", "get", "Whether something else keeps these pods is not known: reading leases kube-node-lease/n1: not allowed to you.", "a is on node n1 and has not started b runs on node n1"},
		{"volumeattachments", "list", "Whether something else keeps these pods is not known: listing volumeattachments: not allowed to you.",
			"a is on node n1 and has not started because nothing has been heard of the kubelet of node n1 for 60s what helps: bring node n1 back: its pods and their volumes go on by themselves " +
				"b was running on node n1 because nothing has been heard of the kubelet of node n1 for 60s what helps: bring node n1 back: its pods and their volumes go on by themselves"},
	} {
		t.Run(c.resource, func(t *testing.T) {
			h := kit.New(t)
			h.Put(append(bound(), pod("a", onNode("n1")), pod("b", onNode("n1"), inPhase(corev1.PodRunning)))...)
			h.Put(machine("n1", corev1.ConditionTrue, time.Minute)...)
			defer h.API.Deny(c.verb, c.resource)()
			report := explainClaim(t, h, askedDriver(flat()))
			if notes := strings.Join(report.Notes, "\n"); strings.Count(notes, c.note) != 1 {
				t.Errorf("notes %q, want %q", notes, c.note)
			}
			if got := paragraph(written(t, report, "text"), "Pods that use the claim"); got != c.pods {
				t.Errorf("says %s, want %s", got, c.pods)
			}
		})
	}
}
