// SPDX-License-Identifier: Apache-2.0

package kit

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// raw is an object as JSON: numbers are int64 or float64, as the API machinery reads them.
type raw = map[string]any

func encode(obj any) (raw, error) {
	data, err := stdjson.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", obj, err)
	}
	r := raw{}
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("reading %T: %w", obj, err)
	}
	delete(r, "kind")
	delete(r, "apiVersion")
	return withoutNulls(r), nil
}

// decode fills an empty object; a reused one would keep what the server does not have.
func decode(r raw, into kube.Object) error {
	reflect.ValueOf(into).Elem().SetZero()
	return stdjson.Unmarshal([]byte(text(r)), into)
}

func text(value any) string {
	data, err := stdjson.Marshal(value)
	if err != nil {
		return fmt.Sprintf("%v", value)
	}
	return string(data)
}

func withoutNulls(r raw) raw {
	for key, value := range r {
		if value == nil {
			delete(r, key)
		} else if inner, ok := value.(raw); ok {
			withoutNulls(inner)
		}
	}
	return r
}

func clone(r raw) raw { return runtime.DeepCopyJSON(r) }

// merge applies a JSON merge patch (RFC 7396): null removes, maps merge, all else replaces.
func merge(into, patch raw) raw {
	merged := maps.Clone(into)
	if merged == nil {
		merged = raw{}
	}
	for key, value := range patch {
		switch typed := value.(type) {
		case nil:
			delete(merged, key)
		case raw:
			inner, _ := merged[key].(raw)
			merged[key] = merge(inner, typed)
		default:
			merged[key] = value
		}
	}
	return merged
}

func metadata(r raw) raw {
	m, ok := r["metadata"].(raw)
	if !ok {
		m = raw{}
		r["metadata"] = m
	}
	return m
}

func keyOf(r raw) kube.Key {
	return kube.Key{Namespace: stringOf(metadata(r), "namespace"), Name: stringOf(metadata(r), "name")}
}

func stringOf(r raw, field string) string {
	s, _ := r[field].(string)
	return s
}

func finalizers(r raw) []string {
	list, _ := metadata(r)["finalizers"].([]any)
	var names []string
	for _, f := range list {
		if s, ok := f.(string); ok {
			names = append(names, s)
		}
	}
	return names
}

// patchText is a patch as it stands in the log: without the lock.
func patchText(data []byte) string {
	patch := raw{}
	if err := json.Unmarshal(data, &patch); err != nil {
		return string(data)
	}
	if m, ok := patch["metadata"].(raw); ok {
		delete(m, "uid")
		delete(m, "resourceVersion")
		if len(m) == 0 {
			delete(patch, "metadata")
		}
	}
	return text(patch)
}

func asStatus(err error, status *apierrors.APIStatus) bool { return errors.As(err, status) }
