// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/operations.md anew")

const root = "../.."

// silent are packages whose errors nobody but their callers hears: they are wrapped, or are about programs that call
// them wrongly.
var silent = []string{"pkg/capability", "pkg/wellknown", "pkg/trace", "pkg/capacity"}

// packages are all others.
func packages(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"pkg/*", "pkg/controller/*", "cmd/*"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			name, _ := filepath.Rel(root, path)
			if name = filepath.ToSlash(name); name != "pkg/controller" && !slices.Contains(silent, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

func table(t *testing.T) Table {
	t.Helper()
	src, err := os.ReadFile("table.txt")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parse(string(src))
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func texts(t *testing.T) []Text {
	t.Helper()
	all, err := scan(root, packages(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 300 {
		t.Fatalf("only %d texts were found: what do the programs tell them with now?", len(all))
	}
	return all
}

// TestEveryTextIsExplained: a text in the code that is not in the table is one that users meet alone, and one in the table
// that is not in the code is one that nobody will ever see.
func TestEveryTextIsExplained(t *testing.T) {
	advice := adviceOf(texts(t))
	told := map[string]bool{}
	for _, g := range table(t).Groups {
		for _, e := range g.Entries {
			if told[e.Text] {
				t.Errorf("twice in the table: %s", e.Text)
			}
			told[e.Text] = true
			if _, ok := advice[e.Text]; !ok {
				t.Errorf("in table.txt and not in the code: %s", e.Text)
			}
			if e.Cause == "" && g.Cause == "" && !isTelling(advice[e.Text]) {
				t.Errorf("without a cause: %s", e.Text)
			}
			if e.Remedy == "" && g.Remedy == "" && !isTelling(advice[e.Text]) {
				t.Errorf("without a remedy: %s", e.Text)
			}
		}
	}
	for _, text := range texts(t) {
		if !told[text.Format] {
			t.Errorf("in the code (%s) and not in table.txt: %s", text.Package, text.Format)
			told[text.Format] = true
		}
	}
}

func adviceOf(all []Text) map[string]string {
	advice := map[string]string{}
	for _, text := range all {
		if advice[text.Format] == "" {
			advice[text.Format] = text.Advice
		}
	}
	return advice
}

// TestEveryEventIsExplained compares the reasons that the code uses with those of the table.
func TestEveryEventIsExplained(t *testing.T) {
	var want, got []string
	values := reasons(t)
	uses := regexp.MustCompile(`wellknown\.(Reason\w+)`)
	for _, p := range packages(t) {
		files, _ := filepath.Glob(filepath.Join(root, p, "*.go"))
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range uses.FindAllStringSubmatch(string(src), -1) {
				want = append(want, values[m[1]])
			}
			if strings.Contains(string(src), `"LeaderElection"`) {
				want = append(want, "LeaderElection")
			}
		}
	}
	for _, e := range table(t).Events {
		got = append(got, e.Reason)
		if e.Type != "Normal" && e.Type != "Warning" && e.Type != "both" || e.Meaning == "" || e.Remedy == "" {
			t.Errorf("%s: type %q, meaning %q, remedy %q", e.Reason, e.Type, e.Meaning, e.Remedy)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(slices.Compact(want), got); d != "" {
		t.Errorf("reasons of events in the code (-) and in the table (+):\n%s", d)
	}
}

// reasons are the values of the constants.
func reasons(t *testing.T) map[string]string {
	t.Helper()
	values := map[string]string{}
	for _, file := range []string{"provisioner.go", "snapshotter.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "pkg/wellknown", file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Reason") {
				if value, ok := spec.Values[0].(*ast.BasicLit); ok {
					values[spec.Names[0].Name], _ = strconv.Unquote(value.Value)
				}
			}
			return true
		})
	}
	return values
}

// TestPage keeps docs/operations.md equal to the table and the code: go test ./test/operations -update
func TestPage(t *testing.T) {
	const path = root + "/docs/operations.md"
	want := render(table(t), adviceOf(texts(t)))
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("docs/operations.md (+) is not what the table and the code say (-); go test ./test/operations -update writes it anew:\n%s", d)
	}
}

// TestScan: each form in which texts are told is found, with the advice around it, and what only joins other texts is not.
func TestScan(t *testing.T) {
	dir := t.TempDir()
	src := `package p
const prefix, pinned = "begins so ", prefix + "and ends so"
var advice = map[Reason]string{Gone: "choose another"}
func blame(in Input, err error) error { return advise(err, "blame %s", in.Class) }
func StillAttached(v string) string { return fmt.Sprintf("still attached to %s", v) }
func told() {
	_ = errors.New("plain")
	_ = fmt.Errorf("wrapped %s: %w", a, err)
	_ = fmt.Errorf("%w: %w", a, b)
	_ = advise(fmt.Errorf("advised"), "do %s, %swith it", it, prefix)
	_ = blame(in, errors.New("blamed"))
	_ = failed(Gone, pinned+": %s", a)
	_ = Tell{Told{true, reason, "in a literal"}}
	r.Recorder.Warning(obj, reason, "an event: "+err.Error())
	http.Error(w, "for a browser", 500)
}`
	if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := scan(dir, []string{"."})
	if err != nil {
		t.Fatal(err)
	}
	want := []Text{
		{".", "still attached to %s", ""}, {".", "plain", ""}, {".", "wrapped %s: %w", ""}, {".", "advised", "do %s, begins so with it"}, {".", "blamed", "blame %s"},
		{".", "begins so and ends so: %s", "choose another"}, {".", "in a literal", ""}, {".", "an event: %s", ""},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if _, err := scan(dir, []string{"nowhere"}); err == nil {
		t.Error("a package without files was read")
	}
}

// TestParse: a table that says something twice, or of nothing, is refused.
func TestParse(t *testing.T) {
	for _, src := range []string{"- alone", "= G\n- x\n? a\n? b", "* too | few"} {
		if _, err := parse(src); err == nil {
			t.Errorf("%q was taken", src)
		}
	}
	parsed, err := parse("# head\n= G\nintro\n? all\n! mend\n- x %s\n? because\n* R | Normal | o | p | m | h")
	if err != nil {
		t.Fatal(err)
	}
	want := Table{Head: "# head\n", Events: []Event{{"R", "Normal", "o", "p", "m", "h"}}, Groups: []Group{{
		Title: "G", Intro: "intro\n", Cause: "all", Remedy: "mend", Entries: []Entry{{Text: "x %s", Cause: "because"}},
	}}}
	if d := cmp.Diff(want, parsed); d != "" {
		t.Error(d)
	}
	page := render(parsed, map[string]string{"x %s": "mend %q"})
	for _, says := range []string{"# head\n\n## Events", "| `R` | Normal | o | p | m | h |", "- `x …`\n  because *The message goes on:* mend …."} {
		if !strings.Contains(page, says) {
			t.Errorf("the page does not say %q:\n%s", says, page)
		}
	}
}
