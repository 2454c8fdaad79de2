// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/migration"
	"github.com/csi-tandem/csi-tandem/pkg/params"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

const (
	ebs      = "ebs.csi.aws.com"
	ebsPlain = "kubernetes.io/aws-ebs"
	gce      = "pd.csi.storage.gke.io"
)

func translating(driver string) Config {
	c := config()
	c.Driver = driver
	if translator, ok := migration.For(driver); ok {
		c.Migration = translator
	}
	return c
}

// replaces makes the driver one that replaces a plugin, and the claim and its class those of the plugin.
func replaces(in *ClaimInput) {
	in.Config = translating(ebs)
	in.Class.Provisioner = ebsPlain
	in.Class.Parameters = map[string]string{"type": "gp2", "fsType": "xfs", "iopsPerGB": "5", "zone": "us-east-1a"}
	in.Class.MountOptions = []string{"noatime"}
	in.Claim.Annotations = map[string]string{wellknown.AnnStorageProvisioner: ebsPlain, wellknown.AnnMigratedTo: ebs}
}

func without(key string) func(*ClaimInput) {
	return func(in *ClaimInput) { delete(in.Claim.Annotations, key) }
}

func TestMigratedClaims(t *testing.T) {
	const notOurs = "Ignore: the claim is not for this driver"
	runClaims(t, []claimRow{
		{"T78 B073 migrated to us", edits{replaces}, ours},
		// Catches one that takes every claim of the plugin that it knows: the plugin may still be at work.
		{"T78 B073 not migrated", edits{replaces, without(wellknown.AnnMigratedTo)}, notOurs},
		{"B073 migrated to another driver", edits{replaces, annotate(wellknown.AnnMigratedTo, gce)}, notOurs},
		{"B073 of another plugin, and migrated to us", edits{replaces, annotate(wellknown.AnnStorageProvisioner, "kubernetes.io/gce-pd")}, notOurs},
		{"B073 migrated to us, asked of nobody", edits{replaces, without(wellknown.AnnStorageProvisioner)}, notOurs},
		{"B073 the old key", edits{replaces, without(wellknown.AnnStorageProvisioner), annotate(wellknown.AnnBetaStorageProvisioner, ebsPlain)}, ours},
		{"B073 the driver by its own name", edits{replaces, annotate(wellknown.AnnStorageProvisioner, ebs), without(wellknown.AnnMigratedTo)}, ours},
		{"B073 the class belongs to another driver by now", edits{replaces, func(in *ClaimInput) { in.Class.Provisioner = gce }},
			"Ignore: the class of the claim belongs to another driver"},
		{"B073 a driver that replaces nothing", edits{replaces, func(in *ClaimInput) { in.Config = translating("d") }}, notOurs},
		{"T78 a class that cannot be translated", edits{replaces, func(in *ClaimInput) {
			in.Class.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "k", Values: []string{"v"}}}}}
		}}, "Reject: failed to translate storage class: cannot simultaneously set allowed topologies and zone/zones parameters"},
	})
}

// TestMigratedVolume (T78): the driver hears its own words, and the volume is stored in those of the plugin, whole.
func TestMigratedVolume(t *testing.T) {
	attempt := created(t, plain(replaces))
	wanted := map[string]string{"type": "gp2", "iopsPerGB": "5", "allowautoiopspergbincrease": "true"}
	if d := cmp.Diff(wanted, attempt.Request.Parameters); d != "" {
		t.Error(d)
	}
	if got := attempt.Request.VolumeCapabilities[0].GetMount().GetFsType(); got != "xfs" {
		t.Errorf("file system %q", got)
	}
	golden(t, "volume-migrated", built(t, attempt, &csi.Volume{VolumeId: "vol-1"}))
}

// TestUntranslatableVolumes (W11): the volume is removed by its handle, which must not be lost with the
// translation that failed. Catches one that builds the volume to be written into the place of the one it
// would clean up with, and one that writes a volume that nobody can use.
func TestUntranslatableVolumes(t *testing.T) {
	attempt := created(t, plain(replaces))
	answer := Answer{Attempt: attempt, Claim: plain(replaces).Claim, Volume: &csi.Volume{VolumeId: "vol-1", VolumeContext: map[string]string{"partition": "first"}}}
	undo, ok := AfterCreate(answer).(Undo)
	if !ok || undo.Handle != "vol-1" || !undo.Attempt.Open {
		t.Fatalf("got %s", show(AfterCreate(answer)))
	}
	const text = `translating the volume back: failed to convert partition first to integer: strconv.Atoi: parsing "first": invalid syntax`
	if undo.Err.Error() != text {
		t.Errorf("got %v", undo.Err)
	}
}

// inTree is a volume of the plugin, as a cluster has it that migrates to our driver.
func inTree(in *VolumeInput) {
	in.Config = translating(ebs)
	in.Volume.Annotations = map[string]string{wellknown.AnnProvisionedBy: ebsPlain, wellknown.AnnMigratedTo: ebs}
	in.Volume.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{
		AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "aws://us-east-1a/vol-1"},
	}
}

func note(key, value string) volumeEdit {
	return func(in *VolumeInput) { in.Volume.Annotations[key] = value }
}

func TestMigratedVolumesGo(t *testing.T) {
	const notOurs = "Ignore: the volume is gone or not ours"
	classOf := func(parameters map[string]string) volumeEdit {
		return func(in *VolumeInput) {
			in.Class = plain(replaces).Class
			in.Class.Parameters = parameters
		}
	}
	for _, row := range []struct {
		name  string
		edits []volumeEdit
		want  string
	}{
		{"T77 B073 the handle is the driver's", []volumeEdit{inTree}, "Delete: vol-1 with no secret"},
		{"T77 to another driver", []volumeEdit{inTree, note(wellknown.AnnMigratedTo, gce)}, notOurs},
		{"B073 to nobody yet", []volumeEdit{inTree, func(in *VolumeInput) { delete(in.Volume.Annotations, wellknown.AnnMigratedTo) }}, notOurs},
		{"T77 a static one", []volumeEdit{inTree, func(in *VolumeInput) { delete(in.Volume.Annotations, wellknown.AnnProvisionedBy) }}, "Delete: vol-1 with no secret"},
		{"T77 made by us in this form", []volumeEdit{inTree, note(wellknown.AnnProvisionedBy, ebs)}, "Delete: vol-1 with no secret"},
		{"a handle that nobody understands", []volumeEdit{inTree, func(in *VolumeInput) { in.Volume.Spec.AWSElasticBlockStore.VolumeID = "aws://x/y/z" }},
			"Reject: translating volume v: failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume (aws://x/y/z)"},
		{"of a plugin that we do not replace", []volumeEdit{inTree, func(in *VolumeInput) {
			in.Volume.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "p"}}
		}}, "Reject: invalid CSI PV"},
		{"T74 the secret of a class of the plugin", []volumeEdit{inTree, classOf(map[string]string{
			reserved + "provisioner-secret-name": "s", reserved + "provisioner-secret-namespace": "n"})}, "Delete: vol-1 with n/s"},
		{"T74 a class that cannot be translated", []volumeEdit{inTree, classOf(map[string]string{"zone": "a"}), func(in *VolumeInput) {
			in.Class.AllowedTopologies = []corev1.TopologySelectorTerm{{}}
		}}, "Reject: failed to translate storage class: cannot simultaneously set allowed topologies and zone/zones parameters"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := show(NextVolumeStep(released(row.edits...))); got != row.want {
				t.Errorf("got\n%s, want\n%s", got, row.want)
			}
		})
	}
}

// TestHolders: what is in use under a handle is found in either form, also where the stored form has lost a
// part of the handle. Catches one that compares handles alone, and would delete a volume that is in use.
func TestHolders(t *testing.T) {
	const handle = "projects/p/zones/us-central1-a/disks/disk"
	in := plain(replaces, func(in *ClaimInput) {
		in.Config = translating(gce)
		in.Class.Provisioner, in.Class.Parameters = "kubernetes.io/gce-pd", nil
		in.Claim.Annotations = map[string]string{wellknown.AnnStorageProvisioner: "kubernetes.io/gce-pd", wellknown.AnnMigratedTo: gce}
	})
	attempt := created(t, in)
	stored := built(t, attempt, &csi.Volume{VolumeId: handle})
	other := stored.DeepCopy()
	other.ObjectMeta = metav1.ObjectMeta{Name: "by-hand"}
	elsewhere := other.DeepCopy()
	elsewhere.Spec.GCEPersistentDisk.PDName = "another"
	plainOne := released().Volume
	ofDriver := released().Volume
	ofDriver.Spec.CSI.Driver, ofDriver.Spec.CSI.VolumeHandle = gce, handle
	for name, row := range map[string]struct {
		volume *corev1.PersistentVolume
		want   bool
	}{
		"the claim's own":        {stored, true},
		"the same disk, by hand": {other, true},
		"another disk":           {elsewhere, false},
		"of another driver":      {plainOne, false},
		"in the driver's form":   {ofDriver, true},
	} {
		if got, err := in.Holds(row.volume, attempt, handle); got != row.want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if _, err := translating(ebs).Holds(released(inTree, func(in *VolumeInput) { in.Volume.Spec.AWSElasticBlockStore.VolumeID = "aws://x/y/z" }).Volume, attempt, handle); err == nil {
		t.Error("a volume that cannot be translated counts as another")
	}
}

// TestSecretsOfMigratedClasses: the plugin knew no secrets, but its class may name those of the driver.
func TestSecretsOfMigratedClasses(t *testing.T) {
	attempt := created(t, plain(replaces, parameters(reserved+"node-stage-secret-name", "s", reserved+"node-stage-secret-namespace", "n")))
	if ref := attempt.Volume.Spec.CSI.NodeStageSecretRef; ref == nil || ref.Name != "s" || attempt.Secret != nil {
		t.Errorf("node stage %v, %v %v", ref, params.Provisioner, attempt.Secret)
	}
}
