// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// protobuf is what the built-in kinds have in common.
type protobuf interface {
	Marshal() ([]byte, error)
	Unmarshal(data []byte) error
}

// packer is a kind that says itself how it is packed, since its JSON does not hold all of it.
type packer interface {
	pack() ([]byte, error)
	unpack(data []byte) error
}

// codes stand in packed objects for the finalizers and keys of annotations that nearly all have: those are a
// third of what a bound volume would take. No finalizer and no key of an annotation can begin with a tilde.
var codes, meanings = func() (codes, meanings map[string]string) {
	codes, meanings = map[string]string{}, map[string]string{}
	for i, word := range []string{
		"kubernetes.io/pvc-protection", "kubernetes.io/pv-protection", wellknown.FinalizerVolume,
		wellknown.AnnStorageProvisioner, wellknown.AnnBetaStorageProvisioner, wellknown.AnnProvisionedBy,
		wellknown.AnnDeletionSecretName, wellknown.AnnDeletionSecretNamespace,
		wellknown.FinalizerSnapshotSource, wellknown.FinalizerSnapshotBound, wellknown.FinalizerContent,
		wellknown.AnnSnapshotDeletionSecretName, wellknown.AnnSnapshotDeletionSecretNamespace,
	} {
		code := "~" + strconv.FormatInt(int64(i), 36)
		codes[word], meanings[code] = code, word
	}
	return codes, meanings
}()

// translate changes finalizers and keys of annotations by a dictionary; what is not in it stays.
func translate(obj Object, by map[string]string) {
	word := func(w string) string {
		if other, ok := by[w]; ok {
			return other
		}
		return w
	}
	if finalizers := obj.GetFinalizers(); len(finalizers) > 0 {
		translated := make([]string, 0, len(finalizers))
		for _, f := range finalizers {
			translated = append(translated, word(f))
		}
		obj.SetFinalizers(translated)
	}
	if annotations := obj.GetAnnotations(); len(annotations) > 0 {
		translated := make(map[string]string, len(annotations))
		for key, value := range annotations {
			translated[word(key)] = value
		}
		obj.SetAnnotations(translated)
	}
}

// encode is the short form of an object, which the caller alone has: protobuf for the built-in kinds, JSON for
// custom ones, which have no other that every one of them can be read from again.
func encode(obj Object) ([]byte, error) {
	finalizers, annotations := obj.GetFinalizers(), obj.GetAnnotations()
	translate(obj, codes)
	data, err := encodeWhole(obj)
	obj.SetFinalizers(finalizers)
	obj.SetAnnotations(annotations)
	return data, err
}

func encodeWhole(obj Object) ([]byte, error) {
	switch o := any(obj).(type) {
	case packer:
		return o.pack()
	case protobuf:
		return o.Marshal()
	}
	data, err := json.Marshal(obj)
	return bytes.Clone(data), err // what json gives has room behind it that would be kept for good
}

func decode(data []byte, obj Object) error {
	err := decodeWhole(data, obj)
	translate(obj, meanings)
	return err
}

func decodeWhole(data []byte, obj Object) error {
	switch o := any(obj).(type) {
	case packer:
		return o.unpack(data)
	case protobuf:
		return o.Unmarshal(data)
	}
	return json.Unmarshal(data, obj)
}
