// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"maps"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/klog/v2"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// anyAccount stands for an account that the API server does not name.
const anyAccount = "the account of this process"

// cure is what grants rights. Whose they are differs with each installation: a manifest that binds them to an account of
// its own does nothing for the pod that lacks them, so that the account is named as well.
type cure struct {
	manifest string
	// components are folders by the plural of what they grant something on.
	components map[string]string
}

// of says what to do about a missing right.
func (c cure) of(r Right, account string) string {
	return wellknown.GrantRight(c.components[r.Resource], c.manifest, account)
}

// learnAccount asks who the process is, once something is missing. It asks once: another name later would look
// like another right.
func (a *access) learnAccount(ctx context.Context) {
	a.mu.Lock()
	known := a.account != "" || !slices.Contains(slices.Collect(maps.Values(a.verdicts)), refused)
	a.mu.Unlock()
	if known {
		return
	}
	account := anyAccount
	review, err := kube.Create(ctx, a.client, &authenticationv1.SelfSubjectReview{})
	switch {
	case err != nil:
		klog.FromContext(ctx).V(2).Info("Cannot ask who this process is", "err", err)
	case review.Status.UserInfo.Username != "":
		account = review.Status.UserInfo.Username
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.account = account
}
