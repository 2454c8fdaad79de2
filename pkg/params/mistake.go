// SPDX-License-Identifier: Apache-2.0

package params

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Mistake is an error about the secrets that a class names. Its text is what users of such sidecars search
// for, and names no parameter; the rest says where to look.
type Mistake struct {
	// Keys are the parameters that it is about.
	Keys []string
	// Tokens are what may stand in their values; nil where the values are not the mistake.
	Tokens []string
	// wants is what the keys have to be, where it is not about their values' tokens.
	wants string
	err   error
}

func (m *Mistake) Error() string { return m.err.Error() }
func (m *Mistake) Unwrap() error { return m.err }

// Place says which parameters of a class have to be looked at, and what may stand in them.
func (m *Mistake) Place(class string) string {
	if len(m.Tokens) == 0 {
		return fmt.Sprintf("look at %s of %s, %s", Parameters(m.Keys), class, m.wants)
	}
	return fmt.Sprintf("look at %s of %s, which may hold these and no other tokens: %s", Parameters(m.Keys), class, strings.Join(m.Tokens, ", "))
}

// TakesAnnotations tells that the mistake may as well be in the annotations of the claim: the values take some from
// there, and may.
func (m *Mistake) TakesAnnotations(parameters map[string]string) bool {
	may := slices.ContainsFunc(m.Tokens, func(token string) bool { return strings.HasPrefix(token, "${"+annotation) })
	return may && slices.ContainsFunc(m.Keys, func(key string) bool { return strings.Contains(parameters[key], "${"+annotation) })
}

// Parameters says which ones are meant.
func Parameters(keys []string) string {
	if len(keys) == 1 {
		return "parameter " + keys[0]
	}
	return "parameters " + strings.Join(keys, " and ")
}

// SecretKeys are the parameters in which a class names a kind of secret: its own, or else the default ones.
func SecretKeys(kind Kind, parameters map[string]string) []string {
	own := kinds[kind]
	if keys := present(parameters, own.name, own.oldName, own.namespace, own.oldNamespace); len(keys) > 0 || !own.hasDefault {
		return keys
	}
	return present(parameters, kinds[Default].name, kinds[Default].namespace)
}

func present(parameters map[string]string, keys ...string) []string {
	var found []string
	for _, key := range keys {
		if _, ok := parameters[key]; ok && key != "" {
			found = append(found, key)
		}
	}
	return found
}

// written are the keys of one kind that a class has, and the one that is missing where it has half of a pair.
func (k keyPair) written(parameters map[string]string) []string {
	names := present(parameters, k.name, k.oldName)
	if len(names) == 0 {
		names = []string{k.name}
	}
	namespaces := present(parameters, k.namespace, k.oldNamespace)
	if len(namespaces) == 0 {
		namespaces = []string{k.namespace}
	}
	return append(names, namespaces...)
}

// anyAnnotation stands for the tokens that a claim brings itself.
const annotation, anyAnnotation = "pvc.annotations['", "pvc.annotations['KEY']"

func (t Tokens) inNamespace() []string { return written(t.Namespace) }

func (t Tokens) inName() []string { return written(t.Name) }

func written(tokens map[string]string) []string {
	var all []string
	for _, token := range slices.Sorted(maps.Keys(tokens)) {
		if !strings.HasPrefix(token, annotation) {
			all = append(all, "${"+token+"}")
		}
	}
	if _, ofClaim := tokens["pvc.name"]; ofClaim {
		all = append(all, "${"+anyAnnotation+"} for an annotation that the claim has")
	}
	return all
}
