// SPDX-License-Identifier: Apache-2.0

package params

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// Kind is what a secret is for. It decides which keys of the class name it.
type Kind int

// The kinds of secrets. Default feeds all kinds of a StorageClass that have no keys of their own.
const (
	Default Kind = iota
	Provisioner
	ControllerPublish
	NodeStage
	NodePublish
	ControllerExpand
	NodeExpand
	ControllerModify
	Snapshotter
	SnapshotterList
	GroupSnapshotter
	GroupSnapshotterGet
)

// keyPair holds the keys of one kind. The old ones have no prefix and exist for a few kinds only.
type keyPair struct {
	title                 string
	name, namespace       string
	oldName, oldNamespace string
	hasDefault            bool
}

var kinds = [...]keyPair{
	Default: {title: "Default",
		name: wellknown.ParamSecretName, namespace: wellknown.ParamSecretNamespace},
	Provisioner: {title: "Provisioner", hasDefault: true,
		name: wellknown.ParamProvisionerSecretName, namespace: wellknown.ParamProvisionerSecretNamespace,
		oldName: wellknown.ParamOldProvisionerSecretName, oldNamespace: wellknown.ParamOldProvisionerSecretNamespace},
	ControllerPublish: {title: "ControllerPublish", hasDefault: true,
		name: wellknown.ParamControllerPublishSecretName, namespace: wellknown.ParamControllerPublishSecretNamespace,
		oldName: wellknown.ParamOldControllerPublishSecretName, oldNamespace: wellknown.ParamOldControllerPublishSecretNamespace},
	NodeStage: {title: "NodeStage", hasDefault: true,
		name: wellknown.ParamNodeStageSecretName, namespace: wellknown.ParamNodeStageSecretNamespace,
		oldName: wellknown.ParamOldNodeStageSecretName, oldNamespace: wellknown.ParamOldNodeStageSecretNamespace},
	NodePublish: {title: "NodePublish", hasDefault: true,
		name: wellknown.ParamNodePublishSecretName, namespace: wellknown.ParamNodePublishSecretNamespace,
		oldName: wellknown.ParamOldNodePublishSecretName, oldNamespace: wellknown.ParamOldNodePublishSecretNamespace},
	ControllerExpand: {title: "ControllerExpand", hasDefault: true,
		name: wellknown.ParamControllerExpandSecretName, namespace: wellknown.ParamControllerExpandSecretNamespace},
	NodeExpand: {title: "NodeExpand", hasDefault: true,
		name: wellknown.ParamNodeExpandSecretName, namespace: wellknown.ParamNodeExpandSecretNamespace},
	ControllerModify: {title: "ControllerModify", hasDefault: true,
		name: wellknown.ParamControllerModifySecretName, namespace: wellknown.ParamControllerModifySecretNamespace},
	Snapshotter: {title: "Snapshotter",
		name: wellknown.ParamSnapshotterSecretName, namespace: wellknown.ParamSnapshotterSecretNamespace},
	SnapshotterList: {title: "SnapshotterList",
		name: wellknown.ParamSnapshotterListSecretName, namespace: wellknown.ParamSnapshotterListSecretNamespace},
	GroupSnapshotter: {title: "GroupSnapshotter",
		name: wellknown.ParamGroupSnapshotterSecretName, namespace: wellknown.ParamGroupSnapshotterSecretNamespace},
	GroupSnapshotterGet: {title: "GroupSnapshotterGet",
		name: wellknown.ParamGroupSnapshotterGetSecretName, namespace: wellknown.ParamGroupSnapshotterGetSecretNamespace},
}

// String is the kind as error messages call it.
func (k Kind) String() string { return kinds[k].title }

// ResolveSecret returns the reference that the class gives for a kind of secret, or nil when the class
// names none. A kind that is given only in part is an error; it does not fall back to the default keys,
// because the user meant something else than the default.
func ResolveSecret(kind Kind, parameters map[string]string, tokens Tokens) (*corev1.SecretReference, error) {
	keys := kinds[kind]
	name, namespace, mistake := templates(kind, parameters)
	if mistake != nil {
		mistake.err = fmt.Errorf("failed to get name and namespace template from params: %w", mistake.err)
		return nil, mistake
	}
	if name == "" && keys.hasDefault {
		keys = kinds[Default]
		if name, namespace, mistake = templates(Default, parameters); mistake != nil {
			mistake.err = fmt.Errorf("failed to get default name and namespace template from params: %w", mistake.err)
			return nil, mistake
		}
	}
	if name == "" {
		return nil, nil
	}
	resolved := &corev1.SecretReference{}
	var err error
	// The namespace first: with both wrong, users of such sidecars have always seen this error.
	if resolved.Namespace, err = namespaceOf(namespace, tokens.Namespace); err != nil {
		return nil, &Mistake{Keys: present(parameters, keys.namespace, keys.oldNamespace), Tokens: tokens.inNamespace(), err: err}
	}
	if resolved.Name, err = nameOf(name, tokens.Name); err != nil {
		return nil, &Mistake{Keys: present(parameters, keys.name, keys.oldName), Tokens: tokens.inName(), err: err}
	}
	return resolved, nil
}

// templates returns what the class says for one kind: both empty when it says nothing, else both filled.
func templates(kind Kind, parameters map[string]string) (name, namespace string, mistake *Mistake) {
	keys := kinds[kind]
	name, hasName, twice := either(parameters, keys.name, keys.oldName)
	namespace, hasNamespace, twiceNamespace := either(parameters, keys.namespace, keys.oldNamespace)
	switch {
	case twice || twiceNamespace:
		mistake = &Mistake{wants: "of which those without " + wellknown.ReservedParameterPrefix + " are the old names of the others: leave the old ones out",
			err: fmt.Errorf("%s secrets specified in parameters with both \"csi\" and %q keys", keys.title, wellknown.ReservedParameterPrefix)}
	case hasName != hasNamespace:
		mistake = &Mistake{wants: "which have to be there both, or none",
			err: fmt.Errorf("either name and namespace for %s secrets specified, Both must be specified", keys.title)}
	case hasName && (name == "" || namespace == ""):
		mistake = &Mistake{wants: "which need a value both, or have to be left out both",
			err: fmt.Errorf("%s secrets specified in parameters but value of either namespace or name is empty", keys.title)}
	}
	if mistake != nil {
		mistake.Keys = keys.written(parameters)
	}
	return name, namespace, mistake
}

func either(parameters map[string]string, key, oldKey string) (value string, found, twice bool) {
	value, found = parameters[key]
	if oldKey == "" {
		return value, found, false
	}
	old, hasOld := parameters[oldKey]
	if !found {
		value = old
	}
	return value, found || hasOld, found && hasOld
}
