// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestShow(t *testing.T) {
	o := newOptions()
	o.out, o.label = filepath.Join(t.TempDir(), "made", "on demand"), "frugal"
	var out bytes.Buffer
	if err := o.show(&out, frugal()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"objects/s", "8.00 (≤ 8.0)", "2.00s", "create persistentvolumes 4.20", "patch persistentvolumes 10.00"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "over budget") {
		t.Errorf("nothing is over budget:\n%s", out.String())
	}
	for _, extension := range []string{".json", ".md", ".svg"} {
		if content, err := os.ReadFile(filepath.Join(o.out, "frugal"+extension)); err != nil || len(content) == 0 {
			t.Errorf("%s: %v", extension, err)
		}
	}
	// Budgets are nobody's but our own.
	o.snapshotter = "theirs"
	out.Reset()
	if err := o.show(&out, frugal()); err != nil || strings.Contains(out.String(), "≤") {
		t.Errorf("%v\n%s", err, out.String())
	}
	o.against = filepath.Join(o.out, "missing.json")
	if err := o.show(&out, frugal()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v for results that are not there", err)
	}
}

// Whoever cannot read the picture must be told by a test and not by a browser.
func TestPictureIsWellFormed(t *testing.T) {
	against, err := decodeResult(published)
	if err != nil {
		t.Fatal(err)
	}
	r := frugal()
	r.Label = `<&"`
	texts := 0
	for d := xml.NewDecoder(bytes.NewReader(draw(r, against))); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "text" {
			texts++
		}
	}
	// Two of the legend, two titles, one line, and in each panel a name and two figures for each phase.
	if want := 5 + 2*3*len(budgets); texts != want {
		t.Errorf("%d texts, want %d", texts, want)
	}
	if len(draw(&Result{}, &Result{})) == 0 {
		t.Error("nothing was drawn of nothing")
	}
}

func TestMarkdown(t *testing.T) {
	var out bytes.Buffer
	table := &table{head: []string{"a", "b"}}
	table.add("1", "2")
	table.markdown(&out)
	if want := "| a | b |\n|---|---|\n| 1 | 2 |\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// Figures must replace the ones before and nothing else, and a document without a place for them must not be taken for written.
func TestFiguresGoIntoTheDocument(t *testing.T) {
	o := newOptions()
	o.out, o.document = t.TempDir(), filepath.Join(t.TempDir(), "performance.md")
	const head, tail = "# Speed\n\n<!-- bench:phases -->\n<!-- /bench -->\n\n<!-- bench:latency -->\nold\n<!-- /bench -->\n", "the end\n"
	if err := os.WriteFile(o.document, []byte(head+tail), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := o.show(io.Discard, frugal()); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(o.document)
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	if !strings.HasPrefix(text, "# Speed\n\n<!-- bench:phases -->\n\n300 objects") || !strings.HasSuffix(text, "old\n<!-- /bench -->\n"+tail) || strings.Count(text, "objects/s") != 1 {
		t.Errorf("the document is now\n%s", text)
	}
	if _, err := os.Stat(strings.TrimSuffix(o.document, ".md") + ".svg"); err != nil {
		t.Error(err)
	}
	if err := o.keep("memory", &table{}); err == nil {
		t.Error("figures went where there is no place for them")
	}
}

func TestUsage(t *testing.T) {
	stat := []byte("42 (a ) b) S 1 42 42 0 -1 4194304 96 0 0 0 150 50 0 0 20 0 1 0 1179482 3133440 361\n")
	status := []byte("Name:\ta\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nThreads:\t1\n")
	got, err := parseUsage(stat, status)
	if want := (usage{cpu: 2 * time.Second, resident: 1 << 20, peak: 2 << 20}); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	for _, broken := range []string{"", "42 (a) S 1", "42 (a) S 1 42 42 0 -1 4194304 96 0 0 0 many 50 0 0"} {
		if _, err := parseUsage([]byte(broken), status); err == nil {
			t.Errorf("%q was taken for a line of stat", broken)
		}
	}
	if !usageOf(0).isUnknown {
		t.Error("a process that is not there has used something")
	}
}

func TestQueueLength(t *testing.T) {
	metrics := "# TYPE workqueue_depth gauge\nworkqueue_depth{name=\"claim\"} 7\nworkqueue_depth{name=\"storagecapacity\"} 3\n" +
		"workqueue_depth{name=\"csistoragecapacity-delete\"} 1e+04\nworkqueue_adds_total{name=\"storagecapacity\"} 9\n"
	if got, err := queueLength(metrics); err != nil || got != 10003 {
		t.Errorf("got %d, %v", got, err)
	}
	for _, broken := range []string{"workqueue_depth{name=\"claim\"} 7\n", "workqueue_depth{name=\"capacity\"} many\n", ""} {
		if _, err := queueLength(broken); err == nil {
			t.Errorf("%q has a queue for capacity", broken)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, args := range []string{
		"-mode=everything", "-n=0", "-label=a/b", "-label=", "-snapshots=3 -volumes=2", "-with=nothing", "-poll=0s", "more", "-writers=x",
	} {
		if _, err := parse(strings.Fields(args), io.Discard); err == nil {
			t.Errorf("%s was taken", args)
		}
	}
	o, err := parse([]string{"-mode=memory", "-with=controller=/bin/c --a=b --c", "-provisioner-flags=--x --y"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if got := o.others.String(); got != "controller=/bin/c --a=b --c" || o.isOwn() {
		t.Errorf("got %q, own: %v", got, o.isOwn())
	}
	var help bytes.Buffer
	if _, err := parse([]string{"-help"}, &help); err == nil || !strings.Contains(help.String(), "-mode capacity") {
		t.Errorf("%v: %s", err, help.String())
	}
}
