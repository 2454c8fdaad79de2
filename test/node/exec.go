// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
)

// run runs a command inside, in the group of a node's programs or, without a name, in one of its own.
func (m *Machine) run(ctx context.Context, node string, command ...string) (string, error) {
	if node == "" {
		node = "errands"
	}
	path, args := m.Inside(node, command[0], command[1:])
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(plain(os.Environ()), "PATH="+m.tools.dir+":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return out.String(), errors.Join(fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String())), context.Cause(ctx))
	}
	return out.String(), nil
}

// Exec runs a command in the first container of a pod that runs, and gives what it prints.
func (m *Machine) Exec(ctx context.Context, pod *corev1.Pod, command ...string) (string, error) {
	w, ok := m.workers[pod.Spec.NodeName]
	if !ok {
		return "", fmt.Errorf("pod %s is on %q, which is no real node", pod.Name, pod.Spec.NodeName)
	}
	if len(pod.Status.ContainerStatuses) == 0 {
		return "", fmt.Errorf("pod %s has no container yet", pod.Name)
	}
	_, id, _ := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
	if id == "" {
		return "", fmt.Errorf("the container of pod %s has not been started yet", pod.Name)
	}
	out, err := m.run(ctx, w.name, append([]string{
		m.tools.path("ctr"), "-a", w.socket(), "-n", "k8s.io", "tasks", "exec", "--exec-id", fmt.Sprintf("exec-%d", m.execs.Add(1)), id,
	}, command...)...)
	if err != nil {
		return out, fmt.Errorf("running %q in pod %s: %w", strings.Join(command, " "), pod.Name, err)
	}
	return out, nil
}
