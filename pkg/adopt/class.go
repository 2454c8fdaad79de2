// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"
	"fmt"
	"slices"
	"strings"

	snapv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/pkg/spelling"
)

// shown is how many classes an error names.
const shown = 8

// otherClasses says which class could be meant instead, or what goes without one. The list is help and no more: where it
// cannot be read, the advice is shorter.
func (p *Plan) otherClasses(ctx context.Context, c kube.Client) string {
	const without = "without a class say --driver-name and --deletion-policy"
	var names, texts []string
	err := each(ctx, c, metav1.ListOptions{}, func(class *snapv1.VolumeSnapshotClass) {
		if p.order.Driver == "" || p.order.Driver == class.Driver {
			names, texts = append(names, class.Name), append(texts, fmt.Sprintf("%s (of driver %s)", class.Name, class.Driver))
		}
	})
	if err != nil {
		return "name one that is there, which kubectl get volumesnapshotclasses lists; " + without
	}
	slices.Sort(texts)
	if len(texts) > shown {
		texts = append(texts[:shown], fmt.Sprintf("%d more", len(texts)-shown))
	}
	meant := ""
	if near := spelling.Nearest(p.order.Class, names); near != "" {
		meant = fmt.Sprintf("did you mean %s? ", near)
	}
	switch {
	case len(texts) > 0:
		return meant + "name one that is there: " + strings.Join(texts, ", ") + "; " + without
	case p.order.Driver != "":
		return fmt.Sprintf("driver %s has none, so create one; %s", p.order.Driver, without)
	}
	return "there is none at all, so create one; " + without
}
