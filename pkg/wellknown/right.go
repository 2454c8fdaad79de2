// SPDX-License-Identifier: Apache-2.0

package wellknown

import "strings"

// GrantRight says what gives an account a right that it lacks: a component of the manifests, if one is named, or a role of its own.
// A manifest that binds the right to another account does nothing for it, so that it is always named, as far as it is known.
func GrantRight(component, manifest, account string) string {
	if account == "" {
		account = "the account of the pod"
	}
	text := "bind a role such as that in " + manifest + " to " + account
	if component != "" {
		text = "add " + component + " to deploy/pair or deploy/node, or " + text
	}
	return text
}

// ComponentSecrets is the component with the right to read secrets.
const ComponentSecrets = "deploy/components/secrets"

// AccountIn is whom a refusal of the API server is about, empty where it is not for the want of a right. Its details do not hold
// that, only its text does.
func AccountIn(refusal error) string {
	_, behind, _ := strings.Cut(refusal.Error(), ` User "`)
	account, _, closed := strings.Cut(behind, `"`)
	if !closed {
		return ""
	}
	return account
}
