// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"slices"
	"strings"
	"testing"
)

// importing is a file of package name that imports these paths.
func importing(name string, paths ...string) string {
	var b strings.Builder
	b.WriteString("package " + name + "\n")
	for _, p := range paths {
		if dir, ok := strings.CutPrefix(p, "~"); ok {
			p = Module + dir
		}
		b.WriteString("import _ \"" + p + "\"\n")
	}
	return b.String()
}

var arrowProofs = []proof{
	{"facts import nothing of ours", "arrows", "pkg/fault/fault.go", importing("fault", "~/pkg/wellknown"), "imports pkg/wellknown"},
	{"facts keep out of client-go", "arrows", "pkg/wellknown/wellknown.go", importing("wellknown", "k8s.io/client-go/kubernetes"), "keeps out of"},
	{"facts keep out of context", "arrows", "pkg/capability/capability.go", importing("capability", "context"), "imports context"},
	{"topology may import names", "arrows", "pkg/topology/topology.go", importing("topology", "~/pkg/wellknown"), ""},
	{"topology may not import codes", "arrows", "pkg/topology/topology.go", importing("topology", "~/pkg/fault"), "imports pkg/fault"},
	{"thought keeps out of logging", "arrows", "pkg/params/params.go", importing("params", "k8s.io/klog/v2"), "keeps out of"},
	{"thought keeps out of context", "arrows", "pkg/provision/provision.go", importing("provision", "context"), "imports context"},
	{"machines do not know each other", "arrows", "pkg/snapshot/snapshot.go", importing("snapshot", "~/pkg/provision"), "imports pkg/provision"},
	{"a machine may import facts", "arrows", "pkg/snapshot/snapshot.go", importing("snapshot", "~/pkg/fault", "~/pkg/params"), ""},
	{"driver does not know the API", "arrows", "pkg/driver/driver.go", importing("driver", "k8s.io/client-go/rest"), "keeps out of"},
	{"driver does not know thought", "arrows", "pkg/driver/driver.go", importing("driver", "~/pkg/topology"), "imports pkg/topology"},
	{"kube does not know gRPC", "arrows", "pkg/kube/kube.go", importing("kube", "google.golang.org/grpc"), "keeps out of"},
	{"kube does not know driver", "arrows", "pkg/kube/kube.go", importing("kube", "~/pkg/driver"), "imports pkg/driver"},
	{"the queue knows nothing of storage", "arrows", "pkg/reconcile/reconcile.go", importing("reconcile", "k8s.io/api/storage/v1"), "keeps out of"},
	{"rooms do not know each other", "arrows", "pkg/controller/claim/claim.go", importing("claim", "~/pkg/controller/volume"), "imports pkg/controller/volume"},
	{"rooms do not know the roof", "arrows", "pkg/controller/claim/claim.go", importing("claim", "~/pkg/sidecar"), "imports pkg/sidecar"},
	{"a room imports all below", "arrows", "pkg/controller/claim/claim.go", importing("claim", "~/pkg/provision", "~/pkg/kube", "~/pkg/driver", "context"), ""},
	{"the roof knows no room", "arrows", "pkg/sidecar/sidecar.go", importing("sidecar", "~/pkg/controller/claim"), "imports pkg/controller/claim"},
	{"the roof knows no machine", "arrows", "pkg/sidecar/sidecar.go", importing("sidecar", "~/pkg/provision"), "imports pkg/provision"},
	{"a package without a row", "arrows", "pkg/attic/attic.go", "package attic\n", "has no row"},
	{"a package below a room", "arrows", "pkg/driver/inner/inner.go", "package inner\n", "has no row"},
	{"programs decide nothing", "arrows", "cmd/provisioner/main.go", importing("main", "~/pkg/provision"), "only wires"},
	{"programs hand questions on", "arrows", "cmd/provisioner/main.go", importing("main", "~/pkg/explain"), ""},
	{"rooms do not explain themselves", "arrows", "pkg/controller/claim/a.go", importing("claim", "~/pkg/explain"), "which pkg/controller/claim may not"},
	{"programs wire", "arrows", "cmd/provisioner/main.go", importing("main", "~/pkg/sidecar", "~/pkg/controller/claim"), ""},
	{"the kit is for tests", "arrows", "test/demo/main.go", importing("main", "~/test/kit"), "outside a _test.go"},
	{"the kit in a test", "arrows", "pkg/kube/kube_test.go", importing("kube", "~/test/kit"), ""},
	{"tests of pkg do not reach for e2e", "arrows", "pkg/kube/kube_test.go", importing("kube", "~/test/e2e"), "a test imports"},
	{"an example stands alone", "arrows", "examples/driver/main.go", importing("main", "~/pkg/fault"), "read and copied"},
	{"an example imports its own", "arrows", "examples/driver/main.go", importing("main", "~/examples/driver/store"), ""},

	{"codes are read in one table", "owners", "pkg/controller/claim/act.go", importing("claim", "google.golang.org/grpc/codes"), "only fault"},
	{"status is read in one table", "owners", "pkg/driver/driver.go", importing("driver", "google.golang.org/grpc/status"), "only fault"},
	{"tests may script codes", "owners", "pkg/driver/driver_test.go", importing("driver", "google.golang.org/grpc/status"), ""},
	{"examples answer with codes", "owners", "examples/driver/main.go", importing("main", "google.golang.org/grpc/codes"), ""},
	{"fault reads codes", "owners", "pkg/fault/fault.go", importing("fault", "google.golang.org/grpc/codes", "google.golang.org/grpc/status"), ""},
	{"only driver connects", "owners", "pkg/sidecar/sidecar.go", importing("sidecar", "github.com/kubernetes-csi/csi-lib-utils/connection"), "only driver"},
	{"only driver measures", "owners", "pkg/sidecar/http.go", importing("sidecar", "github.com/kubernetes-csi/csi-lib-utils/metrics"), "only driver"},
	{"only the roof has global flags", "owners", "pkg/controller/claim/options.go", importing("claim", "github.com/kubernetes-csi/csi-lib-utils/standardflags"), "only sidecar"},
	{"only provision maps access modes", "owners", "pkg/kube/kube.go", importing("kube", "github.com/kubernetes-csi/csi-lib-utils/accessmodes"), "only provision"},
	{"nobody brings all of Kubernetes to lead", "owners", "pkg/sidecar/lease.go", importing("sidecar", "k8s.io/client-go/tools/leaderelection/resourcelock"), "nobody"},
	{"nor to write", "owners", "pkg/kube/kube.go", importing("kube", "k8s.io/client-go/kubernetes/typed/core/v1"), "nobody"},
}

func TestArrows(t *testing.T) { prove(t, arrowProofs) }

// TestArrowsPointOneWay: the table itself has no circle, so that no set of allowed imports can become one.
func TestArrowsPointOneWay(t *testing.T) {
	var visit func(name string, path []string)
	visit = func(name string, path []string) {
		if slices.Contains(path, name) {
			t.Fatalf("a circle: %v", append(path, name))
		}
		r, _ := rowOf(name)
		for _, next := range r.ours {
			visit(next, append(path, name))
		}
	}
	for name := range arrows {
		visit(name, nil)
	}
}

// TestArrowsNameRooms: a name in a row that has no row of its own is a slip of the pen.
func TestArrowsNameRooms(t *testing.T) {
	for name, r := range arrows {
		for _, target := range r.ours {
			if _, ok := rowOf(target); !ok {
				t.Errorf("%s may import %s, which has no row", name, target)
			}
		}
	}
}
