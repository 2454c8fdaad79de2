// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"strings"
	"testing"
)

func lines(n int) string { return strings.Repeat("\n", n) }

func branches(n int) string {
	return "package kube\nfunc f(a bool) {\n" + strings.Repeat("if a {}\n", n) + "}\n"
}

var shapeProofs = []proof{
	{"a file of 401 lines", "size", "test/kit/kit.go", "package kit\n" + lines(400), "401 lines"},
	{"a file of 400 lines", "size", "test/kit/kit.go", "package kit\n" + lines(399), ""},
	{"a test of 401 lines", "size", "pkg/kube/kube_test.go", "package kube\n" + lines(400), "401 lines"},
	{"a main of 61 lines", "size", "cmd/provisioner/main.go", "package main\n" + lines(60), "61 lines, 60"},
	{"a function of 81 lines", "size", "pkg/kube/kube.go", "package kube\nfunc f() {" + lines(80) + "}\n", "f has 81 lines"},
	{"a function of 80 lines", "size", "pkg/kube/kube.go", "package kube\nfunc f() {" + lines(79) + "}\n", ""},
	{"a test's table is data", "size", "pkg/kube/kube_test.go", "package kube\nfunc f() {\nx := []int{" + lines(100) + "}\n}\n", ""},
	{"a table in the product is not", "size", "pkg/kube/kube.go", "package kube\nfunc f() {\nx := []int{" + lines(100) + "}\n}\n", "f has 103 lines"},
	{"twelve ways", "complexity", "pkg/kube/kube.go", branches(11), ""},
	{"thirteen ways", "complexity", "pkg/kube/kube.go", branches(12), "13 ways"},
	{"cases and conditions count", "complexity", "pkg/kube/kube.go",
		"package kube\nfunc f(a, b bool) {\nswitch {\n" + strings.Repeat("case a && b:\n", 6) + "default:\n}\n}\n", "13 ways"},

	{"six parameters", "signature", "pkg/kube/kube.go", "package kube\nfunc f(a, b, c int, d, e, g string) {}\n", "takes 6 parameters"},
	{"five parameters", "signature", "pkg/kube/kube.go", "package kube\nfunc f(a, b, c int, d, e string) {}\n", ""},
	{"four results", "signature", "pkg/kube/kube.go", "package kube\nfunc f() (a, b, c int, err error) { return }\n", "returns 4 results"},
	{"a bool outside", "signature", "pkg/kube/kube.go", "package kube\nfunc Do(force bool) {}\n", "takes a bool"},
	{"a bool inside", "signature", "pkg/kube/kube.go", "package kube\nfunc do(force bool) {}\n", ""},
	{"a bool that an interface wants", "signature", "pkg/kube/kube.go", "package kube\nfunc (f feed) OnAdd(o any, first bool) {}\n", ""},
	{"context later", "signature", "pkg/kube/kube.go", "package kube\nimport \"context\"\nfunc f(a int, ctx context.Context) {}\n", "a context after"},
	{"two contexts", "signature", "pkg/kube/kube.go", "package kube\nimport \"context\"\nfunc f(work, life context.Context, a int) {}\n", ""},
	{"error first", "signature", "pkg/kube/kube.go", "package kube\nfunc f() (error, int) { return nil, 0 }\n", "not its last"},

	{"a long name", "receiver", "pkg/kube/kube.go", "package kube\nfunc (self *T) f() {}\n", "longer than two letters"},
	{"both kinds", "receiver", "pkg/kube/kube.go", "package kube\nfunc (t *T) f() {}\nfunc (t T) g() {}\n", "pointer and value"},
	{"both kinds of a generic type", "receiver", "pkg/kube/kube.go", "package kube\nfunc (t *T[K]) f() {}\nfunc (t T[K]) g() {}\n", "pointer and value"},
	{"one kind", "receiver", "pkg/kube/kube.go", "package kube\nfunc (t *T) f() {}\nfunc (t *T) g() {}\nfunc (u U) g() {}\n", ""},
}

func TestShapes(t *testing.T) { prove(t, shapeProofs) }
