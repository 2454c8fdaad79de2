// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const look = 100 * time.Millisecond

// question looks at the world once. While it is not done it says why; an error is another reason to look again, since
// everything here can be in between two states.
type question func(ctx context.Context) (done bool, why string, err error)

// await asks until the answer is yes, and shows what is waited for. Who waits longer is also told the last warning about
// each of the named objects.
func (s *Scene) await(ctx context.Context, what string, ask question, about ...string) error {
	ctx, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	w := wait{scene: s, what: what, about: about, began: time.Now(), told: time.Now(), asked: time.Now()}
	for {
		done, why, err := ask(ctx)
		if done && err == nil {
			s.Out.done(what, time.Since(w.began))
			return nil
		}
		if err != nil {
			why = err.Error()
		}
		if err := s.alive(what); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			s.Out.wipe()
			return fmt.Errorf("waited for %s until %s: %s%s", time.Since(w.began).Round(time.Second), what, why, w.warning)
		case now := <-ticker.C:
			w.tell(ctx, now, why)
		}
	}
}

// wait is what has been told of one thing that is waited for.
type wait struct {
	scene *Scene
	what  string
	about []string
	// began is when the waiting did, told and asked are when something was last said, and when warnings were last looked for.
	began, told, asked time.Time
	warning            string
}

// tell says what is waited for, now and then.
func (w *wait) tell(ctx context.Context, now time.Time, why string) {
	if now.Sub(w.asked) >= hurry {
		w.asked = now
		for _, name := range w.about {
			if said := w.scene.lastWarning(ctx, name); said != "" {
				w.warning = fmt.Sprintf("; the last warning about %s is %s", name, said)
				w.scene.warn(name, said)
			}
		}
	}
	if w.scene.Out.terminal || now.Sub(w.told) >= hurry {
		w.told = now
		w.scene.Out.waiting(w.what, why, now.Sub(w.began))
	}
}

// alive is an error if somebody has ended who is needed for what is waited for.
func (s *Scene) alive(what string) error {
	ends := s.ends()
	if len(ends) == 0 {
		return nil
	}
	s.Out.wipe()
	return fmt.Errorf("nobody is left who could see to it that %s: %s", what, strings.Join(ends, "; "))
}

// ends tells which programs have ended by themselves, each with its last words.
func (s *Scene) ends() []string {
	var ends []string
	for _, p := range s.Cast.Processes() {
		if found := p.Ends(); len(found) > 0 {
			ends = append(ends, fmt.Sprintf("%s, its last words: %s", strings.Join(found, ", "), p.LogTail(3)))
		}
	}
	return ends
}

// check is a question that has one answer now.
func (s *Scene) check(what string, holds bool, found string) error {
	if !holds {
		return fmt.Errorf("%s is not true: %s", what, found)
	}
	s.Out.done(what, 0)
	return nil
}

// read reads an example and makes it fit the driver.
func (s *Scene) read(name string) (content []byte, changes string, err error) {
	content, err = os.ReadFile(filepath.Join(s.Stage.Root, filepath.FromSlash(name)))
	if err != nil {
		return nil, "", fmt.Errorf("reading an example: %w", err)
	}
	content, changes = s.adapt(content)
	return content, changes, nil
}

// apply applies an example.
func (s *Scene) apply(ctx context.Context, names ...string) error {
	for _, name := range names {
		content, changes, err := s.read(name)
		if err != nil {
			return err
		}
		s.Out.command("kubectl apply -f "+name, changes)
		if err := s.Stage.Cluster.ApplyBytes(ctx, content, metav1.NamespaceDefault); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes the objects of an example and does not wait.
func (s *Scene) remove(ctx context.Context, names ...string) error {
	for _, name := range names {
		content, _, err := s.read(name)
		if err != nil {
			return err
		}
		s.Out.command("kubectl delete -f "+name, "")
		if err := s.Stage.Cluster.DeleteBytes(ctx, content, metav1.NamespaceDefault); err != nil {
			return err
		}
	}
	return nil
}

// podFor takes the example of a pod and lets it use another claim.
func (s *Scene) podFor(ctx context.Context, name, claim string) error {
	content, _, err := s.read("examples/pod.yaml")
	if err != nil {
		return err
	}
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict(content, pod); err != nil {
		return fmt.Errorf("reading examples/pod.yaml: %w", err)
	}
	if len(pod.Spec.Volumes) != 1 || pod.Spec.Volumes[0].PersistentVolumeClaim == nil {
		return errors.New("examples/pod.yaml has other volumes than one claim")
	}
	pod.Name, pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = name, claim
	s.Out.command("kubectl apply -f examples/pod.yaml", "as "+name+", with the claim "+claim)
	_, err = s.Stage.Kube.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating pod %s: %w", name, err)
	}
	return nil
}

// gone turns the answer of a read into one about an object that should not be there.
func gone(err error) (done bool, why string, failure error) {
	if apierrors.IsNotFound(err) {
		return true, "", nil
	}
	return false, "it is still there", err
}
