// SPDX-License-Identifier: Apache-2.0

package provision_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/migration"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

func place(value string) *csi.Topology {
	return &csi.Topology{Segments: map[string]string{"zone": value, "rack": "r"}}
}

func places(from, to int) (list []*csi.Topology) {
	for i := from; i < to; i++ {
		list = append(list, place(fmt.Sprintf("zone-%04d", i)))
	}
	return list
}

// fullAttempt has a value in every field.
func fullAttempt() *provision.Attempt {
	claim := kit.Claim("data")
	volume := kit.Volume("pvc-1", kit.ClaimedBy(claim), func(v *corev1.PersistentVolume) {
		v.Spec.CSI.VolumeAttributes = map[string]string{"id": "x"}
		v.Annotations = map[string]string{"a": "b"}
	})
	translator, _ := migration.For("ebs.csi.aws.com")
	return &provision.Attempt{
		Ref: volume.Spec.ClaimRef,
		Request: &csi.CreateVolumeRequest{
			Name: "pvc-1", CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 40, LimitBytes: 1 << 41},
			VolumeCapabilities: []*csi.VolumeCapability{
				{
					AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: "xfs", MountFlags: []string{"ro"}, VolumeMountGroup: "9"}},
					AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER},
				},
				{AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}},
			},
			Parameters: map[string]string{"tier": "gold \"<&\u2028", "b": "", "a": "1"}, Secrets: map[string]string{"password": "canary"},
			VolumeContentSource: &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: "s"}}},
			AccessibilityRequirements: &csi.TopologyRequirement{
				Requisite: places(0, 300), Preferred: append(places(200, 300), places(0, 200)...),
			},
			MutableParameters: map[string]string{"iops": "5"},
		},
		Secret: &corev1.SecretReference{Namespace: "n", Name: "s"}, Volume: volume, Class: "class-uid", Node: "n1", Topology: true, InTree: true, Migration: translator,
		Source:   &provision.Source{Kind: "VolumeSnapshot", Namespace: "default", Name: "snap"},
		Warnings: []topology.Warning{{Cause: "c", Text: "t"}}, Away: "away", Short: "short",
		Open: true, Prompt: 2, NotBefore: kit.Start, Vague: kit.Start, Told: true, NoSecret: kit.Start, Bare: true, Freed: true, Full: 1, Parked: true,
		Made: &csi.Volume{VolumeId: "v"}, Undoing: &provision.Undoing{Handle: "v", Why: "too small", Open: true},
	}
}

// begunAnew are the fields that mean nothing in another process.
var begunAnew = []string{"Warnings", "Prompt", "NotBefore", "Vague", "Told", "NoSecret", "Bare", "Freed", "Full", "Made"}

// TestRecord: what is recorded makes the same call and the same PersistentVolume. Catches a new field that nobody has thought of
// recording, in the attempt or in the request.
func TestRecord(t *testing.T) {
	want := fullAttempt()
	want.Prior = fullAttempt()
	want.Prior.Node, want.Prior.Prior, want.Prior.Migration = "n0", nil, want.Migration
	for attempt := range slices.Values([]*provision.Attempt{want, want.Prior}) {
		value := reflect.ValueOf(*attempt)
		for i := range value.NumField() {
			if name := value.Type().Field(i).Name; value.Field(i).IsZero() && name != "Prior" {
				t.Fatalf("field %s of the attempt is not tested", name)
			}
		}
	}
	fields := want.Request.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if !want.Request.ProtoReflect().Has(fields.Get(i)) {
			t.Fatalf("field %s of the request is not tested", fields.Get(i).Name())
		}
	}
	written, err := provision.BuildRecord(want)
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(written); strings.Contains(text, "canary") || strings.Contains(text, "password") {
		t.Error("secrets are on record")
	}
	again, err := provision.BuildRecord(want)
	if err != nil || !reflect.DeepEqual(again, written) {
		t.Error("the same attempt is recorded in two ways", err)
	}
	got, err := provision.ParseRecord(written, want.Migration)
	if err != nil {
		t.Fatal(err)
	}
	for _, attempt := range []*provision.Attempt{want, want.Prior} {
		attempt.Request = proto.Clone(attempt.Request).(*csi.CreateVolumeRequest)
		attempt.Request.Secrets = nil
		value := reflect.ValueOf(attempt).Elem()
		for _, name := range begunAnew {
			value.FieldByName(name).SetZero()
		}
	}
	if d := cmp.Diff(want, got, protocmp.Transform(), cmp.Comparer(func(a, b provision.Translator) bool { return a == b })); d != "" {
		t.Error(d)
	}
	if back, err := provision.BuildRecord(got); err != nil || !reflect.DeepEqual(back, written) {
		t.Error("what was read is recorded in another way, and would be written again", err)
	}
}

// TestRecordOfPlaces: requests that name the same segments share them, in whatever order each names them, and a window of a large
// cluster shares most with the next. Catches a copy of the cluster in every entry.
func TestRecordOfPlaces(t *testing.T) {
	size := func(parts map[string]string) (n int) {
		for _, text := range parts {
			n += len(text)
		}
		return n
	}
	shared, bodies := map[string]string{}, 0
	record := func(requirement *csi.TopologyRequirement) {
		t.Helper()
		attempt := fullAttempt()
		attempt.Request.AccessibilityRequirements = requirement
		written, err := provision.BuildRecord(attempt)
		if err != nil {
			t.Fatal(err)
		}
		got, err := provision.ParseRecord(written, attempt.Migration)
		if err != nil || !proto.Equal(got.Request.GetAccessibilityRequirements(), requirement) {
			t.Error("places are not what they were", err)
		}
		for name, text := range written.Parts {
			shared[name] = text
		}
		bodies = max(bodies, len(written.Body))
	}
	const all = 1000
	for start := range 30 {
		record(&csi.TopologyRequirement{Requisite: places(0, all), Preferred: append(places(start, all), places(0, start)...)})
	}
	one := size(shared)
	if limit := all * 45; one > limit || bodies > 4000 {
		t.Errorf("thirty requests share %d bytes, want %d at most; a body has %d", one, limit, bodies)
	}
	for start := range 30 {
		window := places(start, start+all)
		record(&csi.TopologyRequirement{Requisite: window, Preferred: window})
	}
	if n := size(shared); n > 4*one {
		t.Errorf("thirty windows share %d bytes, and one takes %d", n, one)
	}
	record(nil)
	record(&csi.TopologyRequirement{})
	record(&csi.TopologyRequirement{Preferred: []*csi.Topology{{}, place("a"), {}, place("a")}})
}

// TestRecordRefused: what cannot be repeated exactly as it was is not repeated at all.
func TestRecordRefused(t *testing.T) {
	written, err := provision.BuildRecord(fullAttempt())
	if err != nil {
		t.Fatal(err)
	}
	translator := fullAttempt().Migration
	lacking := map[string]string{}
	for name, body := range map[string]string{
		"no JSON":          "{",
		"nothing":          "",
		"another form":     strings.Replace(written.Body, `"version":1`, `"version":2`, 1),
		"no claim":         strings.Replace(written.Body, `"ref":{`, `"ref":{"uid":"","x":{`, 1) + "}",
		"another claim":    strings.Replace(written.Body, `"uid":"`, `"uid":"0`, 1),
		"another name":     strings.Replace(written.Body, `"name":"pvc-1"`, `"name":"pvc-2"`, 1),
		"unknown field":    strings.Replace(written.Body, `"request":{`, `"request":{"somethingNew":1,`, 1),
		"position outside": strings.Replace(written.Body, `"requisite":"0-299"`, `"requisite":"0-300"`, 1),
		"position reverse": strings.Replace(written.Body, `"requisite":"0-299"`, `"requisite":"9-1"`, 1),
		"position no one":  strings.Replace(written.Body, `"requisite":"0-299"`, `"requisite":"x"`, 1),
		"too many":         strings.Replace(written.Body, `"requisite":"0-299"`, `"requisite":"`+strings.Repeat("0-299,", 99)+`1"`, 1),
	} {
		if body == written.Body {
			t.Fatalf("%s: nothing was changed", name)
		}
		if got, err := provision.ParseRecord(provision.Written{Body: body, Parts: written.Parts}, translator); err == nil {
			t.Errorf("%s: read as %v", name, got)
		}
	}
	if _, err := provision.ParseRecord(provision.Written{Body: written.Body, Parts: lacking}, translator); err == nil {
		t.Error("read without its places")
	}
	if _, err := provision.ParseRecord(written, nil); err == nil {
		t.Error("a volume of a plugin that nobody knows would be stored in another form")
	}
}

// TestAsResumed: a request is not repeated for a claim that has moved on, and not forgotten either.
func TestAsResumed(t *testing.T) {
	attempt := &provision.Attempt{Node: "n1"}
	for name, row := range map[string]struct {
		claim  *corev1.PersistentVolumeClaim
		parked bool
	}{
		"the claim is gone":     {nil, false},
		"the same node":         {kit.Claim("data", kit.OnNode("n1")), false},
		"another node":          {kit.Claim("data", kit.OnNode("n2")), true},
		"given back, no choice": {kit.Claim("data"), true},
	} {
		if got := attempt.AsResumed(row.claim).Parked; got != row.parked {
			t.Errorf("%s: parked %v", name, got)
		}
	}
	if (&provision.Attempt{}).AsResumed(kit.Claim("data", kit.OnNode("n1"))).Parked || attempt.Parked {
		t.Error("a request for no node is for every node; and the attempt itself stays as it is")
	}
}

// FuzzParseRecord: whatever stands in a record is refused or read, and what was read makes a PersistentVolume.
func FuzzParseRecord(f *testing.F) {
	written, err := provision.BuildRecord(fullAttempt())
	if err != nil {
		f.Fatal(err)
	}
	for name, text := range written.Parts {
		f.Add(written.Body, name, text)
	}
	f.Add(`{"version":1,"ref":{"namespace":"a","name":"b","uid":"u"},"request":{"name":"v"},"volume":{"metadata":{"name":"v"},"spec":{"csi":{},"claimRef":{"uid":"u"}}}}`, "", "")
	f.Add(`{"version":1,"places":{"parts":["a"],"requisite":"0"}}`, "a", `[null]`)
	translator := fullAttempt().Migration
	f.Fuzz(func(t *testing.T, body, name, text string) {
		attempt, err := provision.ParseRecord(provision.Written{Body: body, Parts: map[string]string{name: text}}, translator)
		if err != nil {
			return
		}
		if _, err := provision.BuildRecord(attempt); err != nil {
			t.Error(err)
		}
		_, _ = provision.BuildVolume(attempt, &csi.Volume{VolumeId: "v", VolumeContext: map[string]string{"a": "b"}})
		_ = attempt.WithSecrets(nil)
	})
}

func BenchmarkBuildRecord(b *testing.B) {
	for _, n := range []int{3, 1000} {
		attempt := fullAttempt()
		attempt.Request.AccessibilityRequirements = &csi.TopologyRequirement{Requisite: places(0, n), Preferred: places(0, n)}
		b.Run(fmt.Sprint(n, " segments"), func(b *testing.B) {
			for b.Loop() {
				if _, err := provision.BuildRecord(attempt); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
