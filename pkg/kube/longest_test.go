// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/snapshot"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// The longest names that the API server takes.
var (
	long   = strings.Repeat("n", 253)
	spaced = strings.Repeat("s", 63)
)

func unread(reason error) error {
	return fmt.Errorf("error getting secret %s in namespace %s: %w", long, spaced, reason)
}

func longClaim() provision.ClaimInput {
	var in provision.ClaimInput
	in.Claim = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: spaced, Name: long}}
	in.Class = &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: long}, Parameters: map[string]string{
		wellknown.ParamProvisionerSecretName: long, wellknown.ParamProvisionerSecretNamespace: spaced}}
	return in
}

// longSnapshot is the text about a snapshot's secret as its VolumeSnapshot gives it, with all that contents put before it.
func longSnapshot(err error) string {
	handle := "h"
	in := snapshot.ContentInput{Content: &snapv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: long}}}
	in.Content.Spec.Source.VolumeHandle = &handle
	in.Class = &snapv1.VolumeSnapshotClass{ObjectMeta: metav1.ObjectMeta{Name: long}, Parameters: map[string]string{
		wellknown.ParamSnapshotterSecretName: long, wellknown.ParamSnapshotterSecretNamespace: spaced}}
	record := snapshot.LackSecret(in, snapshot.Create{}, err)
	return *record.Status.Error.Message
}

// TestRemediesAreWhole: an event holds 1,024 bytes, and a command that ends in the middle can be run by nobody. Catches one that cuts
// what is too long at its end, where the remedies are, and remedies that are too long even by themselves.
func TestRemediesAreWhole(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	account := "system:serviceaccount:" + spaced + ":" + long
	missing := unread(apierrors.NewNotFound(secrets, long))
	forbidden := unread(apierrors.NewForbidden(secrets, long, errors.New(`User "`+account+`" cannot get resource "secrets" in API group "" in the namespace "`+spaced+`"`)))
	annotate := func(object string) string {
		return "kubectl annotate " + object + " --overwrite csi-tandem.io/retry=$(date +%s)"
	}
	claim, volume, content := annotate("pvc -n "+spaced+" "+long), annotate("pv "+long), annotate("vsc "+long)
	const begins, create, without = "error getting secret n", "create that secret", "; if it stays missing for 2 minutes, one try is made without it"
	bind := "add deploy/components/secrets to deploy/pair or deploy/node, or bind a role such as that in deploy/%s/rbac.yaml to " + account
	going := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: long}, Spec: corev1.PersistentVolumeSpec{StorageClassName: long}}
	for name, c := range map[string]struct {
		said string
		want []string
	}{
		"claim, missing":       {fault.Sentence(provision.LackSecret(longClaim(), missing)), []string{begins, create, claim}},
		"claim, forbidden":     {fault.Sentence(provision.LackSecret(longClaim(), forbidden)), []string{begins, fmt.Sprintf(bind, "provisioner"), claim}},
		"volume, missing":      {fault.Sentence(provision.LackDeletionSecret(going, missing)), []string{begins, create, volume, without}},
		"volume, forbidden":    {fault.Sentence(provision.LackDeletionSecret(going, forbidden)), []string{begins, fmt.Sprintf(bind, "provisioner"), volume}},
		"snapshot, missing":    {longSnapshot(missing), []string{"Failed to create snapshot: ", create, content}},
		"snapshot, forbidden":  {longSnapshot(forbidden), []string{"Failed to create snapshot: ", fmt.Sprintf(bind, "snapshotter"), content}},
		"a driver's own words": {"rpc error: code = Internal desc = " + strings.Repeat("x", 2000), []string{"rpc error: code = Internal desc = x"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := kit.New(t)
			writer, stop := startWriter(t, h)
			writer.Warning(kit.Claim("c"), "R", c.said)
			stop()
			told := events(h)
			if len(told) != 1 || len(told[0].Message) > 1024 {
				t.Fatalf("%d events: %v", len(told), told)
			}
			for _, part := range c.want {
				if !strings.Contains(told[0].Message, part) {
					t.Errorf("%q\nis not in\n%s", part, told[0].Message)
				}
			}
		})
	}
}
