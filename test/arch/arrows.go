// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"fmt"
	"slices"
	"strings"
)

// row says what one package may import of ours, and what it must not import of others. A trailing slash means everything below.
type row struct {
	ours   []string
	barred []string
}

// What the kinds of packages keep out of.
var (
	factsBar   = []string{"context", "k8s.io/client-go/", "k8s.io/klog/", "github.com/go-logr/"}
	thoughtBar = append([]string{
		"log", "log/slog", "io/fs", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand",
		"k8s.io/utils/clock", "google.golang.org/grpc/", "flag",
	}, factsBar...)
	facts   = []string{"wellknown", "fault", "capability"}
	thought = []string{"topology", "params", "binding", "snapshot", "provision", "capacity"}
	hands   = []string{"driver", "throttle", "kube", "attempt", "reconcile", "trace"}
	// rooms may also translate what is from before the driver.
	besides = []string{"migration"}
)

// arrows is the plan of the house. A package that has no row here has no place in it yet: deciding that place is the first
// step of adding it.
var arrows = map[string]row{
	"wellknown":  {barred: factsBar},
	"fault":      {barred: factsBar},
	"capability": {barred: factsBar},
	"spelling":   {barred: factsBar},

	"topology":  {ours: []string{"spelling", "wellknown"}, barred: thoughtBar},
	"params":    {ours: []string{"spelling", "wellknown"}, barred: thoughtBar},
	"binding":   {ours: []string{"wellknown"}, barred: thoughtBar},
	"snapshot":  {ours: slices.Concat(facts, []string{"topology", "params", "binding"}), barred: thoughtBar},
	"provision": {ours: slices.Concat(facts, []string{"topology", "params", "binding"}), barred: thoughtBar},
	"capacity":  {ours: slices.Concat(facts, []string{"topology", "params"}), barred: thoughtBar},

	"migration": {barred: []string{"context", "k8s.io/client-go/", "github.com/container-storage-interface/"}},

	// Spans hold no words of others: what could put them there is kept out.
	"trace": {barred: []string{"k8s.io/client-go/", "k8s.io/api/", "k8s.io/apimachinery/", "k8s.io/klog/", "google.golang.org/grpc/", "github.com/container-storage-interface/"}},

	"driver":    {ours: []string{"fault", "capability", "trace"}, barred: []string{"k8s.io/client-go/", "k8s.io/api/"}},
	"throttle":  {ours: []string{"fault"}, barred: []string{"k8s.io/client-go/", "k8s.io/api/", "k8s.io/klog/", "google.golang.org/grpc/"}},
	"kube":      {ours: []string{"wellknown", "fault", "topology", "trace"}, barred: []string{"google.golang.org/grpc/", "github.com/container-storage-interface/"}},
	"attempt":   {ours: []string{"kube"}, barred: []string{"google.golang.org/", "github.com/container-storage-interface/", "github.com/kubernetes-csi/"}},
	"reconcile": {ours: []string{"fault", "trace"}, barred: []string{"k8s.io/api/", "github.com/container-storage-interface/", "github.com/kubernetes-csi/", "google.golang.org/grpc/"}},

	"controller/": {ours: slices.Concat(facts, thought, hands, besides), barred: []string{"google.golang.org/grpc/"}},

	"explain": {ours: slices.Concat(facts, thought, []string{
		"kube", "reconcile", "spelling", "controller/claim", "controller/volume", "controller/source", "controller/volumesnapshot", "controller/content",
	}), barred: []string{"google.golang.org/grpc/", "flag"}},

	// What a user asks for by hand is decided and done in one place, with no room and no driver.
	"adopt": {ours: []string{"wellknown", "params", "binding", "kube", "spelling"}, barred: []string{"google.golang.org/grpc/", "k8s.io/klog/", "flag"}},

	"sidecar": {ours: slices.Concat(facts, hands, []string{"topology", "spelling"})},
}

// rowOf finds the row of a directory below pkg.
func rowOf(dir string) (row, bool) {
	if r, ok := arrows[dir]; ok {
		return r, true
	}
	parent, room, ok := strings.Cut(dir, "/")
	if !ok || room == "" {
		return row{}, false
	}
	r, ok := arrows[parent+"/"]
	return r, ok
}

func checkArrows(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.Files {
		complain := func(format string, args ...any) {
			found = append(found, Finding{"arrows (R20, map of the house)", f.Path, fmt.Sprintf(format, args...)})
		}
		switch {
		case f.within("pkg"):
			checkRoom(f, complain)
		case f.within("cmd"):
			checkMain(f, complain)
		case f.within("examples"):
			for _, p := range f.imports() {
				if dir, ok := ours(p); ok && !strings.HasPrefix(dir, "examples/") {
					complain("imports %s: an example is read and copied by itself", dir)
				}
			}
		}
		checkKit(f, complain)
	}
	return found
}

func checkRoom(f *File, complain func(string, ...any)) {
	dir := strings.TrimPrefix(f.Dir, "pkg/")
	r, ok := rowOf(dir)
	if !ok {
		complain("package pkg/%s has no row in the table of arrows: decide first where it stands", dir)
		return
	}
	for _, p := range f.imports() {
		target, isOurs := ours(p)
		switch {
		case f.Test && isOurs && !strings.HasPrefix(target, "pkg/") && target != "test/kit":
			complain("a test imports %s: of what is not in pkg, only test/kit is for the tests of pkg", target)
		case f.Test:
		case isOurs && !slices.Contains(r.ours, strings.TrimPrefix(target, "pkg/")):
			complain("imports %s, which pkg/%s may not", target, dir)
		case !isOurs && matches(p, r.barred):
			complain("imports %s, which pkg/%s keeps out of", p, dir)
		}
	}
}

// checkMain: the programs say who lives there, and decide nothing.
func checkMain(f *File, complain func(string, ...any)) {
	for _, p := range f.imports() {
		target, isOurs := ours(p)
		allowed := target == "pkg/sidecar" || target == "pkg/explain" || target == "pkg/adopt" || strings.HasPrefix(target, "pkg/controller/")
		if isOurs && !allowed && !f.Test {
			complain("imports %s: a program only wires rooms to the sidecar", target)
		}
	}
}

func checkKit(f *File, complain func(string, ...any)) {
	if f.Test || f.within("test/kit") {
		return
	}
	for _, p := range f.imports() {
		if target, ok := ours(p); ok && (target == "test/kit" || strings.HasPrefix(target, "test/kit/")) {
			complain("imports %s outside a _test.go file", target)
		}
	}
}

// ours turns an import path of this repository into a directory.
func ours(p string) (string, bool) {
	return strings.CutPrefix(p, Module+"/")
}

// matches: a pattern that ends in a slash also means the package of that name and all below it.
func matches(p string, patterns []string) bool {
	for _, pattern := range patterns {
		if p == strings.TrimSuffix(pattern, "/") || strings.HasSuffix(pattern, "/") && strings.HasPrefix(p, pattern) {
			return true
		}
	}
	return false
}

// owner says which packages below pkg may import something that has one place only.
type owner struct {
	imports string
	rooms   []string
	why     string
}

// owners is read from the top, and the first line that fits counts.
var owners = []owner{
	{"google.golang.org/grpc/codes", []string{"fault"}, "gRPC codes are read in one table (R15)"},
	{"google.golang.org/grpc/status", []string{"fault"}, "gRPC codes are read in one table (R15)"},
	{"google.golang.org/grpc/", []string{"driver", "fault"}, "the connection has one owner"},
	{"github.com/kubernetes-csi/csi-lib-utils/connection", []string{"driver"}, "it can end the process on its own"},
	{"github.com/kubernetes-csi/csi-lib-utils/rpc", []string{"driver"}, "questions to the driver are asked in one place"},
	{"github.com/kubernetes-csi/csi-lib-utils/metrics", []string{"driver"}, "calls are measured where they are made"},
	{"github.com/kubernetes-csi/csi-lib-utils/protosanitizer", []string{"driver"}, "requests are logged where they are sent"},
	{"github.com/kubernetes-csi/csi-lib-utils/accessmodes", []string{"provision"}, "access modes are mapped in one table"},
	{"github.com/kubernetes-csi/csi-lib-utils/", []string{"sidecar"}, "its flags live in a variable of the whole process"},
	{"k8s.io/client-go/tools/leaderelection/", nil, "it brings the client of all of Kubernetes"},
	{"k8s.io/client-go/kubernetes/", nil, "it is half of a program's size"},
	{"k8s.io/client-go/informers/", nil, "it is half of a program's size"},
	{"k8s.io/component-base/metrics", []string{"driver", "sidecar"}, "what is measured has two sources"},
	{"k8s.io/component-base/", []string{"sidecar"}, "logging and feature gates are set up once"},
	{"go.opentelemetry.io/", nil, "it is half a megabyte of each idle process: pkg/trace makes the spans"},
	{"k8s.io/csi-translation-lib", []string{"migration"}, "one form of a volume is decided on, the other is only stored"},
}

func checkOwners(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.Files {
		if !f.product() {
			continue
		}
		dir := strings.TrimPrefix(f.Dir, "pkg/")
		for _, p := range f.imports() {
			i := slices.IndexFunc(owners, func(o owner) bool { return matches(p, []string{o.imports}) })
			if i >= 0 && !slices.Contains(owners[i].rooms, dir) {
				who := "nobody"
				if len(owners[i].rooms) > 0 {
					who = "only " + strings.Join(owners[i].rooms, " and ")
				}
				found = append(found, Finding{"owners", f.Path, fmt.Sprintf("imports %s, which %s may: %s", p, who, owners[i].why)})
			}
		}
	}
	return found
}
