// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"

	"github.com/csi-tandem/csi-tandem/test/stage"
)

// Names of what a run makes.
const (
	namespace     = "bench"
	driverName    = "bench.csi.example"
	className     = "bench"
	bareDriver    = "nobody.csi.example"
	bareClass     = "bench-bare"
	snapshotClass = "bench"
)

// hostKey is the topology key of the modes with many nodes; each node is a segment of its own.
const hostKey = "bench.csi.example/host"

// bench is a stage with a driver on it, and the programs that are measured.
type bench struct {
	o      *options
	out    io.Writer
	stage  *stage.Stage
	cast   *stage.Cast
	driver *memoryDriver
	eyes   *eyes
	crew   []*member

	dir  string
	look context.CancelFunc
	// audited is how far the audit log has been read.
	audited int64
}

// open sets everything up but the programs.
func open(ctx context.Context, o *options, out io.Writer) (*bench, error) {
	b := &bench{o: o, out: out}
	if err := b.open(ctx); err != nil {
		return nil, errors.Join(err, b.close(err))
	}
	return b, nil
}

func (b *bench) open(ctx context.Context) error {
	var err error
	// The name is short, since a socket's path has little room.
	if b.dir, err = os.MkdirTemp("", "bench-"); err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	if b.stage, err = stage.Open(ctx, stage.Options{Out: b.out, AuditLog: !modes[b.o.mode].isUncounted}); err != nil {
		return err
	}
	var segment map[string]string
	if modes[b.o.mode].hasNodes {
		segment = map[string]string{hostKey: nodeName(0)}
	}
	socket := filepath.Join(b.dir, "csi.sock")
	if b.driver, err = startDriver(socket, driverName, segment); err != nil {
		return err
	}
	if b.cast, err = b.stage.NewCast(ctx, stage.Roles{Socket: socket, Env: []string{"NAMESPACE=" + stage.Namespace}}); err != nil {
		return err
	}
	if err := b.furnish(ctx); err != nil {
		return fmt.Errorf("preparing the cluster: %w", err)
	}
	looking, stop := context.WithCancel(context.WithoutCancel(ctx))
	b.look = stop
	b.eyes, err = watch(looking, b.stage)
	return err
}

// furnish makes the namespace and the classes.
func (b *bench) furnish(ctx context.Context) error {
	_, err := b.stage.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err == nil {
		err = b.stage.Cluster.AwaitNamespace(ctx, namespace)
	}
	for name, provisioner := range map[string]string{className: driverName, bareClass: bareDriver} {
		if err != nil {
			return err
		}
		class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner}
		_, err = b.stage.Kube.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{})
	}
	if err != nil {
		return err
	}
	class := &snapv1.VolumeSnapshotClass{
		ObjectMeta: metav1.ObjectMeta{Name: snapshotClass}, Driver: driverName, DeletionPolicy: snapv1.VolumeSnapshotContentDelete,
	}
	_, err = b.stage.Snapshots.SnapshotV1().VolumeSnapshotClasses().Create(ctx, class, metav1.CreateOptions{})
	return err
}

// say tells somebody who waits what goes on.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.out, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// lastWords are the ends of the programs' logs.
func (b *bench) lastWords() string {
	var all strings.Builder
	for _, m := range b.crew {
		fmt.Fprintf(&all, "\nthe end of the log of the %s, %s:\n%s", m.name, m.process.Log, m.process.LogTail(8))
	}
	return all.String()
}

// close ends everything. After a failure the logs stay.
func (b *bench) close(failure error) error {
	var failures []error
	for _, m := range b.crew {
		m.process.Terminate()
	}
	if b.look != nil {
		b.look()
	}
	if b.stage != nil {
		failures = append(failures, b.stage.End(), b.keepAudit())
	}
	if b.driver != nil {
		b.driver.stop()
	}
	switch {
	case failure == nil && b.stage != nil:
		failures = append(failures, b.stage.Remove())
	case b.stage != nil && errors.Join(failures...) == nil:
		failures = append(failures, b.stage.KeepLogs())
	}
	if b.dir != "" {
		failures = append(failures, os.RemoveAll(b.dir))
	}
	return errors.Join(failures...)
}

// keepAudit copies the audit log out of the folder that goes.
func (b *bench) keepAudit() error {
	if b.o.audit == "" || b.stage.Cluster == nil || b.stage.Cluster.AuditLog() == "" {
		return nil
	}
	from, err := os.Open(b.stage.Cluster.AuditLog())
	if err != nil {
		return fmt.Errorf("keeping the audit log: %w", err)
	}
	defer from.Close()
	to, err := os.Create(b.o.audit)
	if err != nil {
		return fmt.Errorf("keeping the audit log: %w", err)
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}
