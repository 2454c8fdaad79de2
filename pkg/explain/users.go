// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// User is a pod that uses the claim. What keeps it from starting is not the provisioner's any more once the claim
// is bound, and is what somebody who asks about the claim wants to know all the same.
type User struct {
	Pod   string `json:"pod"`
	State string `json:"state"`
	// Why are the reasons for which it does not run, as far as they can be seen.
	Why    []string `json:"why,omitempty"`
	Advice []string `json:"advice,omitempty"`
}

func (u *User) because(format string, args ...any) {
	if why := fmt.Sprintf(format, args...); !slices.Contains(u.Why, why) {
		u.Why = append(u.Why, why)
	}
}

func (u *User) helps(format string, args ...any) {
	if advice := fmt.Sprintf(format, args...); !slices.Contains(u.Advice, advice) {
		u.Advice = append(u.Advice, advice)
	}
}

// readUsers reads the pods that use a claim which is bound, or waits for its first one. Pods cannot be searched by claim, so
// all of the namespace are read.
func (l *claimLook) readUsers(ctx context.Context) {
	if l.claim.Spec.VolumeName == "" && !waitsForConsumer(l.class) {
		return
	}
	var pods []*kube.Pod
	failed := l.client.apart(func() {
		_ = list(ctx, l.look, l.claim.Namespace, metav1.ListOptions{}, func(p *kube.Pod) {
			if slices.Contains(p.ClaimNames(), l.claim.Name) {
				pods = append(pods, p)
			}
		})
	})
	for _, f := range failed {
		l.note("Which pods use the claim is not shown: %s.", f)
	}
	if len(failed) > 0 {
		return
	}
	slices.SortFunc(pods, func(a, b *kube.Pod) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
	})
	l.users, l.hasUsers = pods, true
}

// showUsers tells which pods use the claim, and why they wait if they do; a few of them whole, waiting ones first.
func (l *claimLook) showUsers(ctx context.Context) {
	if !l.hasUsers {
		return
	}
	pods := l.users
	l.report.Object.State = append(l.report.Object.State, Fact{"used by", podNames(pods)})
	w := &waits{claimLook: l, pods: pods, nodes: map[string]string{}}
	for i, p := range pods {
		if i == shown {
			break
		}
		l.report.Users = append(l.report.Users, w.user(ctx, p))
	}
	for _, failed := range l.client.takeFailed() {
		l.note("Whether something else keeps these pods is not known: %s.", failed)
	}
}

// rank puts pods that wait before those that run, and those that have ended last.
func rank(p *kube.Pod) int {
	switch {
	case isOver(p):
		return 2
	case p.Status.Phase == corev1.PodRunning:
		return 1
	default:
		return 0
	}
}

func isOver(p *kube.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func podNames(pods []*kube.Pod) string {
	var names []string
	for _, p := range pods {
		names = append(names, p.Name)
	}
	switch len(names) {
	case 0:
		return "no pod"
	case 1:
		return "pod " + names[0]
	default:
		return fmt.Sprintf("%d pods: %s", len(names), some(names))
	}
}

// some are as many names as a person wants to read.
func some(names []string) string {
	if len(names) <= shown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
}

// users is the text about them.
func (p *page80) users(users []User) {
	if len(users) == 0 {
		return
	}
	p.line("\nPods that use the claim")
	for _, u := range users {
		p.item("  ", u.Pod+" "+u.State)
		for _, why := range u.Why {
			p.item("    because ", why)
		}
		for _, a := range u.Advice {
			p.item("    what helps: ", a)
		}
	}
}
