// SPDX-License-Identifier: Apache-2.0

package params

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

const prefix = "csi.storage.k8s.io/"

var claim = Claim{Namespace: "ns1", Name: "data", Annotations: map[string]string{"team/key": "blue"}}

func ref(namespace, name string) *corev1.SecretReference {
	return &corev1.SecretReference{Namespace: namespace, Name: name}
}

func TestResolveSecret(t *testing.T) {
	for _, c := range []struct {
		name string
		kind Kind
		in   map[string]string
		want *corev1.SecretReference
		err  string
	}{
		{name: "no keys, no secret", kind: Provisioner},
		{
			name: "T29 own keys", kind: NodeStage,
			in:   map[string]string{prefix + "node-stage-secret-name": "s", prefix + "node-stage-secret-namespace": "n"},
			want: ref("n", "s"),
		},
		{
			name: "T30 default keys feed a kind without own ones", kind: ControllerModify,
			in:   map[string]string{prefix + "secret-name": "s", prefix + "secret-namespace": "n"},
			want: ref("n", "s"),
		},
		{
			name: "T30 own keys override the default", kind: NodeExpand,
			in: map[string]string{prefix + "secret-name": "s", prefix + "secret-namespace": "n",
				prefix + "node-expand-secret-name": "s2", prefix + "node-expand-secret-namespace": "n2"},
			want: ref("n2", "s2"),
		},
		{
			name: "snapshot classes have no default keys", kind: Snapshotter,
			in: map[string]string{prefix + "secret-name": "s", prefix + "secret-namespace": "n"},
		},
		{
			name: "T32 old name and new namespace", kind: Provisioner,
			in:   map[string]string{"csiProvisionerSecretName": "s", prefix + "provisioner-secret-namespace": "n"},
			want: ref("n", "s"),
		},
		{
			name: "T32 the same field twice", kind: Provisioner,
			in: map[string]string{"csiProvisionerSecretName": "s", prefix + "provisioner-secret-name": "s",
				prefix + "provisioner-secret-namespace": "n"},
			err: `failed to get name and namespace template from params: Provisioner secrets specified in parameters with both "csi" and "csi.storage.k8s.io/" keys`,
		},
		{
			name: "T32 the namespace twice", kind: NodePublish,
			in: map[string]string{"csiNodePublishSecretNamespace": "s", prefix + "node-publish-secret-name": "s",
				prefix + "node-publish-secret-namespace": "n"},
			err: `failed to get name and namespace template from params: NodePublish secrets specified in parameters with both "csi" and "csi.storage.k8s.io/" keys`,
		},
		{
			name: "T32 name without namespace does not fall back to the default", kind: ControllerExpand,
			in: map[string]string{prefix + "secret-name": "s", prefix + "secret-namespace": "n",
				prefix + "controller-expand-secret-name": "s"},
			err: `failed to get name and namespace template from params: either name and namespace for ControllerExpand secrets specified, Both must be specified`,
		},
		{
			name: "T32 namespace without name", kind: ControllerPublish,
			in:  map[string]string{"csiControllerPublishSecretNamespace": "s"},
			err: `failed to get name and namespace template from params: either name and namespace for ControllerPublish secrets specified, Both must be specified`,
		},
		{
			name: "T32 empty value", kind: Provisioner,
			in:  map[string]string{prefix + "provisioner-secret-name": "", prefix + "provisioner-secret-namespace": "n"},
			err: `failed to get name and namespace template from params: Provisioner secrets specified in parameters but value of either namespace or name is empty`,
		},
		{
			name: "T32 both values empty", kind: Provisioner,
			in:  map[string]string{prefix + "provisioner-secret-name": "", prefix + "provisioner-secret-namespace": ""},
			err: `failed to get name and namespace template from params: Provisioner secrets specified in parameters but value of either namespace or name is empty`,
		},
		{
			name: "T32 default given in part", kind: NodeStage,
			in:  map[string]string{prefix + "secret-name": "s"},
			err: `failed to get default name and namespace template from params: either name and namespace for Default secrets specified, Both must be specified`,
		},
		{
			name: "S5 snapshot secret given in part", kind: Snapshotter,
			in:  map[string]string{prefix + "snapshotter-secret-name": "s"},
			err: `failed to get name and namespace template from params: either name and namespace for Snapshotter secrets specified, Both must be specified`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ResolveSecret(c.kind, c.in, VolumeTokens("pvc-1", claim))
			if text(err) != c.err {
				t.Errorf("error\n%q, want\n%q", text(err), c.err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestEveryKindHasItsOwnKeys(t *testing.T) {
	for kind, key := range map[Kind]string{
		Provisioner: "provisioner", ControllerPublish: "controller-publish", NodeStage: "node-stage", NodePublish: "node-publish",
		ControllerExpand: "controller-expand", NodeExpand: "node-expand", ControllerModify: "controller-modify",
		Snapshotter: "snapshotter", SnapshotterList: "snapshotter-list",
		GroupSnapshotter: "group-snapshotter", GroupSnapshotterGet: "group-snapshotter-get",
	} {
		got, err := ResolveSecret(kind, map[string]string{prefix + key + "-secret-name": "s", prefix + key + "-secret-namespace": "n"}, Tokens{})
		if err != nil {
			t.Errorf("%v: %v", kind, err)
		}
		if d := cmp.Diff(ref("n", "s"), got); d != "" {
			t.Errorf("%v: %s", kind, d)
		}
	}
}

func TestTokens(t *testing.T) {
	volume := VolumeTokens("pvc-1", claim)
	for _, c := range []struct {
		name, namespace, secret string
		kind                    Kind
		tokens                  Tokens
		want                    *corev1.SecretReference
		err                     string
	}{
		{name: "T33 all tokens in a name", secret: "${pv.name}.${pvc.name}.${pvc.namespace}.${pvc.annotations['team/key']}", namespace: "n", tokens: volume, want: ref("n", "pvc-1.data.ns1.blue")},
		{name: "T33 tokens in a namespace", secret: "s", namespace: "${pvc.namespace}-${pv.name}", tokens: volume, want: ref("ns1-pvc-1", "s")},
		{name: "T33 claim name in a namespace", secret: "s", namespace: "${pvc.name}", tokens: volume, err: `error resolving value "${pvc.name}": invalid tokens: ["pvc.name"]`},
		{name: "T33 annotation in a namespace", secret: "s", namespace: "${pvc.annotations['team/key']}", tokens: volume, err: `error resolving value "${pvc.annotations['team/key']}": invalid tokens: ["pvc.annotations['team/key']"]`},
		{name: "T33 missing annotation", secret: "${pvc.annotations['no']}", namespace: "n", tokens: volume, err: `error resolving value "${pvc.annotations['no']}": invalid tokens: ["pvc.annotations['no']"]`},
		{name: "unknown tokens are sorted and told once", secret: "${z}${a}${z}", namespace: "n", tokens: volume, err: `error resolving value "${z}${a}${z}": invalid tokens: ["a" "z"]`},
		{name: "a word after a dollar is a token", secret: "a$pvc", namespace: "n", tokens: volume, err: `error resolving value "a$pvc": invalid tokens: ["pvc"]`},
		{name: "two dollars are no escape", secret: "a$$b", namespace: "n", tokens: volume, err: `error resolving value "a$$b": invalid tokens: ["$"]`},
		{name: "a lone dollar stays and is refused", secret: "a$", namespace: "n", tokens: volume, err: `"a$" is not a valid secret name`},
		{name: "an unterminated brace vanishes", secret: "a${", namespace: "n", tokens: volume, want: ref("n", "a")},
		{name: "T33 resolved namespace with a dot", secret: "s", namespace: "${pv.name}", tokens: VolumeTokens("pvc.1", claim), err: `"${pv.name}" resolved to "pvc.1" which is not a valid namespace name`},
		{name: "T33 plain namespace in upper case", secret: "s", namespace: "N", tokens: volume, err: `"N" is not a valid namespace name`},
		{name: "T33 resolved name in upper case", secret: "${pvc.name}X", namespace: "n", tokens: volume, err: `"${pvc.name}X" resolved to "dataX" which is not a valid secret name`},
		{name: "a path is no name", secret: "../s", namespace: "n", tokens: volume, err: `"../s" is not a valid secret name`},
		{name: "snapshot tokens", kind: Snapshotter, secret: "${volumesnapshotcontent.name}.${volumesnapshot.name}", namespace: "${volumesnapshot.namespace}", tokens: SnapshotTokens("c1", "ns1", "s1"), want: ref("ns1", "c1.s1")},
		{name: "snapshot name in a namespace", kind: Snapshotter, secret: "s", namespace: "${volumesnapshot.name}", tokens: SnapshotTokens("c1", "ns1", "s1"), err: `error resolving value "${volumesnapshot.name}": invalid tokens: ["volumesnapshot.name"]`},
		{name: "the list secret knows the content only", kind: SnapshotterList, secret: "${volumesnapshot.name}", namespace: "${volumesnapshotcontent.name}", tokens: SnapshotListTokens("c1"), err: `error resolving value "${volumesnapshot.name}": invalid tokens: ["volumesnapshot.name"]`},
		{name: "group tokens", kind: GroupSnapshotter, secret: "${volumegroupsnapshot.name}", namespace: "${volumegroupsnapshot.namespace}", tokens: GroupSnapshotTokens("c1", "ns1", "g1"), want: ref("ns1", "g1")},
		{name: "the group get secret knows the content only", kind: GroupSnapshotterGet, secret: "${volumegroupsnapshotcontent.name}", namespace: "n", tokens: GroupSnapshotGetTokens("c1"), want: ref("n", "c1")},
	} {
		t.Run(c.name, func(t *testing.T) {
			keys := kinds[max(c.kind, Provisioner)]
			got, err := ResolveSecret(max(c.kind, Provisioner), map[string]string{keys.name: c.secret, keys.namespace: c.namespace}, c.tokens)
			if text(err) != c.err {
				t.Errorf("error\n%q, want\n%q", text(err), c.err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}
