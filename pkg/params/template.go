// SPDX-License-Identifier: Apache-2.0

package params

import (
	"fmt"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Tokens are the values that may stand in a template as ${token}. The namespace of a secret knows fewer
// of them than its name: what a user writes into a claim must not choose the namespace a secret is read
// from.
type Tokens struct {
	Name      map[string]string
	Namespace map[string]string
}

// Claim identifies a claim in templates of a StorageClass. Annotations are nil where they are not known
// any more, as when a volume is deleted.
type Claim struct {
	Namespace, Name string
	Annotations     map[string]string
}

// VolumeTokens are the tokens of all kinds of a StorageClass.
func VolumeTokens(volume string, claim Claim) Tokens {
	tokens := Tokens{
		Name: map[string]string{
			"pv.name":       volume,
			"pvc.namespace": claim.Namespace,
			"pvc.name":      claim.Name,
		},
		Namespace: map[string]string{
			"pv.name":       volume,
			"pvc.namespace": claim.Namespace,
		},
	}
	for key, value := range claim.Annotations {
		tokens.Name["pvc.annotations['"+key+"']"] = value
	}
	return tokens
}

// SnapshotTokens are the tokens of Snapshotter.
func SnapshotTokens(content, namespace, name string) Tokens {
	return snapshotTokens("volumesnapshot", content, namespace, name)
}

// SnapshotListTokens are the tokens of SnapshotterList, which is resolved without the VolumeSnapshot.
func SnapshotListTokens(content string) Tokens {
	return contentTokens("volumesnapshot", content)
}

// GroupSnapshotTokens are the tokens of GroupSnapshotter.
func GroupSnapshotTokens(content, namespace, name string) Tokens {
	return snapshotTokens("volumegroupsnapshot", content, namespace, name)
}

// GroupSnapshotGetTokens are the tokens of GroupSnapshotterGet, which is resolved without the
// VolumeGroupSnapshot.
func GroupSnapshotGetTokens(content string) Tokens {
	return contentTokens("volumegroupsnapshot", content)
}

func snapshotTokens(kind, content, namespace, name string) Tokens {
	tokens := contentTokens(kind, content)
	tokens.Name[kind+".name"] = name
	tokens.Name[kind+".namespace"] = namespace
	tokens.Namespace[kind+".namespace"] = namespace
	return tokens
}

func contentTokens(kind, content string) Tokens {
	return Tokens{
		Name:      map[string]string{kind + "content.name": content},
		Namespace: map[string]string{kind + "content.name": content},
	}
}

func nameOf(template string, tokens map[string]string) (string, error) {
	return resolve(template, tokens, "secret name", validation.IsDNS1123Subdomain)
}

func namespaceOf(template string, tokens map[string]string) (string, error) {
	return resolve(template, tokens, "namespace name", validation.IsDNS1123Label)
}

func resolve(template string, tokens map[string]string, what string, check func(string) []string) (string, error) {
	value, err := expand(template, tokens)
	if err != nil {
		return "", err
	}
	switch {
	case len(check(value)) == 0:
		return value, nil
	case value != template:
		return "", fmt.Errorf("%q resolved to %q which is not a valid %s", template, value, what)
	default:
		return "", fmt.Errorf("%q is not a valid %s", value, what)
	}
}

// expand replaces ${token}, and $token as a shell would. A dollar that starts no token stays, and an
// unterminated ${ vanishes: classes in the field rely on both. Every token that is not known is named.
func expand(template string, tokens map[string]string) (string, error) {
	var unknown []string
	value := os.Expand(template, func(token string) string {
		known, ok := tokens[token]
		if !ok {
			unknown = append(unknown, token)
		}
		return known
	})
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return "", fmt.Errorf("error resolving value %q: invalid tokens: %q", template, slices.Compact(unknown))
	}
	return value, nil
}
