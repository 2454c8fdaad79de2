// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/test/stage"
)

// member is a program that is measured.
type member struct {
	name string
	// user is how the API server knows it.
	user    string
	process *stage.Process
	// address is where it serves metrics and profiles.
	address string
}

// hirePair starts the pair and whatever runs beside it.
func (b *bench) hirePair(ctx context.Context) error {
	if _, err := b.hire(ctx, stage.Provisioner); err != nil {
		return err
	}
	if _, err := b.hire(ctx, stage.Snapshotter); err != nil {
		return err
	}
	for _, p := range b.o.others {
		if _, err := b.hireOther(ctx, p, nil); err != nil {
			return err
		}
	}
	return nil
}

// hire starts one of the pair: that of the checkout as deploy/ would, or the program that was named.
func (b *bench) hire(ctx context.Context, program stage.Program, flags ...string) (*member, error) {
	path, more := b.o.provisioner, b.o.provisionerFlags
	if program == stage.Snapshotter {
		path, more = b.o.snapshotter, b.o.snapshotterFlags
	}
	flags = append(flags, strings.Fields(more)...)
	if path != "" {
		named := other{name: string(program), path: path, args: append([]string{"--csi-address=" + b.cast.Socket}, flags...)}
		return b.hireOther(ctx, named, nil)
	}
	m := &member{name: string(program), user: fmt.Sprintf("system:serviceaccount:%s:csi-%s", stage.Namespace, program)}
	served, err := b.serving(m)
	if err != nil {
		return nil, err
	}
	b.crew = append(b.crew, m)
	m.process, err = b.cast.StartSidecar(program, append(flags, served...)...)
	return m, err
}

// hireOther starts a program that is not from here, with a service account that may do everything: its rights are not what
// is measured.
func (b *bench) hireOther(ctx context.Context, p other, flags []string) (*member, error) {
	account := "bench-" + p.name
	kubeconfig, err := b.account(ctx, account)
	if err != nil {
		return nil, fmt.Errorf("making an account for %s: %w", p.name, err)
	}
	m := &member{name: p.name, user: "system:serviceaccount:" + namespace + ":" + account}
	served, err := b.serving(m)
	if err != nil {
		return nil, err
	}
	path, err := filepath.Abs(p.path)
	if err != nil {
		return nil, fmt.Errorf("finding %s: %w", p.path, err)
	}
	args := append([]string{"--kubeconfig=" + kubeconfig}, p.args...)
	m.process = &stage.Process{
		Name: p.name, Path: path, Args: append(append(args, flags...), served...), Log: filepath.Join(b.stage.Dir(), p.name+".log"),
		Env: []string{"NAMESPACE=" + stage.Namespace},
	}
	b.crew = append(b.crew, m)
	return m, m.process.Start()
}

func (b *bench) account(ctx context.Context, name string) (kubeconfig string, err error) {
	object := metav1.ObjectMeta{Name: name}
	_, err = b.stage.Kube.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: object}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return "", err
	}
	_, err = b.stage.Kube.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: object,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return "", err
	}
	return b.stage.Cluster.ServiceAccountKubeconfig(ctx, namespace, name)
}

// serving are the flags with which a program serves what this run reads from it. Without need there are none: what serves
// has more in memory.
func (b *bench) serving(m *member) ([]string, error) {
	if b.o.profiles == "" && !modes[b.o.mode].hasMetrics {
		return nil, nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("choosing a port: %w", err)
	}
	m.address = listener.Addr().String()
	if err := listener.Close(); err != nil {
		return nil, fmt.Errorf("choosing a port: %w", err)
	}
	flags := []string{"--http-endpoint=" + m.address}
	if b.o.profiles != "" {
		flags = append(flags, "--enable-pprof")
	}
	return flags, nil
}

// dismiss ends a program, which then is not measured any more.
func (b *bench) dismiss(m *member) {
	m.process.Terminate()
	for i, other := range b.crew {
		if other == m {
			b.crew = append(b.crew[:i], b.crew[i+1:]...)
			return
		}
	}
}

// starting is how long a program may take to serve.
const starting = 5 * time.Second

// fetch reads what a program serves, as soon as it does.
func (m *member) fetch(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.address+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	for begin := time.Now(); errors.Is(err, syscall.ECONNREFUSED) && time.Since(begin) < starting; {
		if !rest(ctx, starting/200) {
			return nil, context.Cause(ctx)
		}
		answer, err = http.DefaultClient.Do(request)
	}
	if err != nil {
		return nil, fmt.Errorf("asking the %s for %s: %w", m.name, path, err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("asking the %s for %s: %s", m.name, path, answer.Status)
	}
	return content, err
}

// watchOver ends with an error when a program that should run has ended.
func (b *bench) watchOver() error {
	for _, m := range b.crew {
		if ends := m.process.Ends(); len(ends) > 0 {
			return fmt.Errorf("%s", strings.Join(ends, "; "))
		}
	}
	return nil
}
