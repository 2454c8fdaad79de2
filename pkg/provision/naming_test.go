// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

func called(template string) func(*ClaimInput) {
	return func(in *ClaimInput) { in.NameTemplate = template }
}

func TestNameTemplates(t *testing.T) {
	runClaims(t, []claimRow{
		{"the whole of it", edits{called("{namespace}-{name}-{uid}")}, "Create: ns1-data-" + uid},
		{"with words of its own", edits{called("prod.{name}.{uid}")}, "Create: prod.data." + uid},
		{"it replaces prefix and length", edits{called("{uid}"), naming("x", 5)}, "Create: " + uid},
		{"it yields to a volume under the default name", edits{called("{name}-{uid}"), volumeNamed("pvc-"+uid, uid)}, "AlreadyProvisioned"},
		{"it finds its own volume", edits{called("{name}-{uid}"), volumeNamed("data-"+uid, uid)}, "AlreadyProvisioned"},
		{"it yields to the name of an open attempt", edits{called("{name}-{uid}"), func(in *ClaimInput) {
			in.Attempt = created(t, plain())
		}}, "Resume: pvc-" + uid},
		{"a volume by hand has the name", edits{called("{name}-{uid}"), volumeNamed("data-"+uid, "other")},
			"Reject: the name data-" + uid + ` of the new volume is taken by a PersistentVolume of claim "ns2/other"; use another --volume-name-template`},
	})
	names := VolumeNames(Options{NameTemplate: "{name}-{uid}"}, claimRef(plain().Claim))
	if len(names) != 2 || names[0] != "pvc-"+uid || names[1] != "data-"+uid {
		t.Error(names)
	}
}

func TestNameTemplateRefusals(t *testing.T) {
	for _, c := range []struct{ template, want string }{
		{"{namespace}-{name}-{uid}", ""},
		{"{uid}", ""},
		{"{namespace}-{name}", "it has to contain {uid}"},
		{"pvc", "it has to contain {uid}"},
		{"{Uid}-{uid}", "token {Uid} is not known"},
		{"{}{uid}", "token {} is not known"},
		{"{uid", "it has to contain {uid}"},
		{"{{uid}}", "it gives names that no PersistentVolume may have: "},
		{"{uid}-", "it gives names that no PersistentVolume may have: "},
		{"{name}.-{uid}", "it gives names that no PersistentVolume may have: "},
		{"{name}_{uid}", "it gives names that no PersistentVolume may have: "},
		{"Pvc-{uid}", "it gives names that no PersistentVolume may have: "},
		{strings.Repeat("x", 82) + "{name}{uid}", ""},
		{strings.Repeat("x", 83) + "{name}{uid}", "it gives names of 129 bytes and more, and CSI allows 128"},
		{"{uid}{uid}{uid}{uid}", "it gives names of 144 bytes and more"},
	} {
		err := CheckNameTemplate(c.template)
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.template, err, c.want)
		}
	}
}

// What is cut stays unique by the UID, which is never cut, and readable by what begins it.
func TestLongNamesAreCut(t *testing.T) {
	options := Options{NameTemplate: "{namespace}-{name}-{uid}"}
	long := strings.Repeat("abcdefghi.", 25) + "xyz"
	first, second := options.volumeName("ns1", long, uid), options.volumeName("ns1", long+"0", uid)
	if want := "ns1-abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefgh-"; !strings.HasPrefix(first, want) {
		t.Errorf("%q begins otherwise", first)
	}
	if first == second || len(first) > maxVolumeName || !strings.HasSuffix(first, "-"+uid) {
		t.Errorf("%q, %q", first, second)
	}
	if got := options.volumeName(strings.Repeat("n", 63), long, uid); len(got) > maxVolumeName || len(got) < maxVolumeName-2 {
		t.Errorf("%q has %d bytes: room is given away", got, len(got))
	}
	tight := Options{NameTemplate: strings.Repeat("x", 82) + "{name}{uid}"}
	if got := tight.volumeName("ns1", long, uid); len(got) != maxVolumeName || CheckNameTemplate(tight.NameTemplate) != nil {
		t.Errorf("%q has %d bytes", got, len(got))
	}
	if got := options.volumeName("ns1", strings.Repeat("a", 87), uid); got != "ns1-"+strings.Repeat("a", 87)+"-"+uid {
		t.Errorf("%q is cut and fits", got)
	}
}

func FuzzVolumeName(f *testing.F) {
	f.Add("{namespace}-{name}-{uid}", "ns1", "data", "other")
	f.Add("a.{name}{name}{uid}", "kube-system", strings.Repeat("a.", 126)+"b", strings.Repeat("a.", 126)+"c")
	f.Add("{uid}{", "", "", "-")
	f.Fuzz(func(t *testing.T, template, namespace, name, other string) {
		options := Options{NameTemplate: template}
		if CheckNameTemplate(template) != nil || len(validation.IsDNS1123Label(namespace)) > 0 ||
			len(validation.IsDNS1123Subdomain(name)) > 0 || len(validation.IsDNS1123Subdomain(other)) > 0 {
			return
		}
		got := options.volumeName(namespace, name, uid)
		if wrong := validation.IsDNS1123Subdomain(got); len(wrong) > 0 || len(got) > maxVolumeName || !strings.Contains(got, uid) {
			t.Errorf("%s makes %q of %s/%s: %v", template, got, namespace, name, wrong)
		}
		if got != options.volumeName(namespace, name, uid) {
			t.Errorf("%s gives %q and then another name", template, got)
		}
		if second := options.volumeName(namespace, other, types.UID("b"+uid[1:])); second == got {
			t.Errorf("%s gives two claims the name %q", template, got)
		}
		if names := VolumeNames(options, &corev1.ObjectReference{Namespace: namespace, Name: name, UID: uid}); names[0] != "pvc-"+uid {
			t.Errorf("the default name is not looked for: %q", names)
		}
	})
}
