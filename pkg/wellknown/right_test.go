// SPDX-License-Identifier: Apache-2.0

package wellknown

import (
	"errors"
	"testing"
)

// TestGrantRight catches a remedy that gives the right to whom a manifest names, who may be another than the one that lacks it.
func TestGrantRight(t *testing.T) {
	const bind = "bind a role such as that in m/rbac.yaml to a:b"
	for _, c := range []struct{ component, account, want string }{
		{"", "a:b", bind},
		{"", "", "bind a role such as that in m/rbac.yaml to the account of the pod"},
		{ComponentSecrets, "a:b", "add deploy/components/secrets to deploy/pair or deploy/node, or " + bind},
	} {
		if got := GrantRight(c.component, "m/rbac.yaml", c.account); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestAccountIn(t *testing.T) {
	const refused = `secrets "s" is forbidden: User "system:serviceaccount:foo:x-csi-tandem" cannot get resource "secrets" in API group "" in the namespace "n"`
	for text, want := range map[string]string{
		refused: "system:serviceaccount:foo:x-csi-tandem", `no: User ""`: "", `no: User "cut`: "", "forbidden by a webhook": "", "": "",
	} {
		if got := AccountIn(errors.New(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
