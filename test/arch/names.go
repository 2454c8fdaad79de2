// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
)

// drawers are names for things that have not been understood yet (R6).
var drawers = []string{
	"util", "utils", "common", "helper", "helpers", "misc", "base", "manager", "handler", "wrapper", "impl", "types", "shared", "lib",
}

var oneWord = regexp.MustCompile(`^[a-z][a-z0-9]*$`)

// checkPackageNames: one lower-case word, the folder's own (R5), and none of the drawers (R6), for files of the programs too.
func checkPackageNames(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.Files {
		name := f.AST.Name.Name
		bare := name
		if f.Test {
			bare = strings.TrimSuffix(name, "_test")
		}
		complain := func(rule, format string, args ...any) {
			found = append(found, Finding{"package-name (" + rule + ")", f.Path, fmt.Sprintf(format, args...)})
		}
		switch {
		case !oneWord.MatchString(bare):
			complain("R5", "package %s is not one lower-case word", name)
		case bare != "main" && bare != path.Base(f.Dir) && f.Dir != ".":
			complain("R5", "package %s stands in a folder called %s", name, path.Base(f.Dir))
		case slices.Contains(drawers, path.Base(f.Dir)):
			complain("R6", "a package called %s says nothing of what it owns", path.Base(f.Dir))
		}
		if file := strings.TrimSuffix(path.Base(f.Path), ".go"); f.product() && slices.Contains(drawers, file) {
			complain("R6", "a file called %s.go says nothing of its subject", file)
		}
	}
	return found
}

// minComment is about what three short sentences take; less cannot say what is owned, what is not known, and where it stands.
const minComment = 120

// checkPackageComments: one comment for each package of pkg, in the file of its name; in rooms that may be controller.go (R9).
func checkPackageComments(t *Tree) []Finding {
	comments := map[string][]*File{}
	for _, f := range t.Files {
		if !f.within("pkg") || f.Test {
			continue
		}
		if _, ok := comments[f.Dir]; !ok {
			comments[f.Dir] = nil
		}
		if f.AST.Doc != nil {
			comments[f.Dir] = append(comments[f.Dir], f)
		}
	}
	var found []Finding
	for dir, files := range comments {
		if what := commentFault(dir, files); what != "" {
			found = append(found, Finding{"package-comment (R9)", dir, what})
		}
	}
	return found
}

func commentFault(dir string, files []*File) string {
	name := path.Base(dir)
	if len(files) != 1 {
		return fmt.Sprintf("%d files carry a package comment, %s.go alone should", len(files), name)
	}
	file, text := path.Base(files[0].Path), files[0].AST.Doc.Text()
	isRoom := strings.HasPrefix(dir, "pkg/controller/") && file == "controller.go"
	switch {
	case file != name+".go" && !isRoom:
		return fmt.Sprintf("the package comment stands in %s, it belongs in %s.go", file, name)
	case !strings.HasPrefix(text, "Package "+name+" "):
		return fmt.Sprintf("the package comment does not begin with %q", "Package "+name)
	case len(text) < minComment:
		return "the package comment does not say what it owns, what it must not know, and where it stands in the walks"
	}
	return ""
}

// foreignNames are methods whose name an interface of others dictates.
var foreignNames = []string{"GetObjectKind", "OnAdd"}

// checkGetNames: a name says its cost, and Get says nothing (R7). Where RPCs are passed on, their names are the CSI spec's.
func checkGetNames(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.Files {
		if f.Test || !f.within("pkg") {
			continue
		}
		for _, fn := range functions(f) {
			name := fn.Name.Name
			isRPC := fn.Recv != nil && (f.within("pkg/driver") || f.within("pkg/throttle"))
			if regexp.MustCompile(`^Get([A-Z0-9_]|$)`).MatchString(name) && !isRPC && !slices.Contains(foreignNames, name) {
				found = append(found, Finding{"get (R7)", t.at(fn), name + ": Fetch… for a live read, Next…, Build…, Is… or a plain noun for what costs nothing"})
			}
		}
	}
	return found
}

// aliases are what a few packages with a telling path and an empty name are called everywhere (R8).
var aliases = map[string]string{
	"k8s.io/api/core/v1":                   "corev1",
	"k8s.io/api/storage/v1":                "storagev1",
	"k8s.io/apimachinery/pkg/apis/meta/v1": "metav1",
	"k8s.io/apimachinery/pkg/api/errors":   "apierrors",
	"github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1": "snapv1",
	"github.com/container-storage-interface/spec/lib/go/csi":                          "csi",
}

func checkAliases(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.Files {
		for _, spec := range f.AST.Imports {
			p := importPath(spec)
			got := path.Base(p)
			if spec.Name != nil {
				got = spec.Name.Name
			}
			if want, fixed := aliases[p]; fixed && got != want && got != "_" {
				found = append(found, Finding{"alias (R8)", t.at(spec), fmt.Sprintf("%s is called %s here, and %s everywhere else", p, got, want)})
			}
			if got == "." {
				found = append(found, Finding{"alias (R8)", t.at(spec), "imports " + p + " without a name"})
			}
		}
	}
	return found
}

const header = "// SPDX-License-Identifier: Apache-2.0\n"

func checkHeaders(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.Files {
		if !strings.HasPrefix(string(f.Src), header) && !ast.IsGenerated(f.AST) {
			found = append(found, Finding{"header", f.Path, "does not begin with " + strings.TrimSpace(header)})
		}
	}
	return found
}
