// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// published are the counts and rates of the incumbents, as measured with this control plane and a driver that answers at
// once on a machine of two cores, with --kube-api-qps=1000 --kube-api-burst=2000 and all other flags default.
//
//go:embed incumbents.json
var published []byte

// other loads what to draw beside.
func (o *options) other() (*Result, error) {
	content := published
	if o.against != "" {
		var err error
		if content, err = os.ReadFile(o.against); err != nil {
			return nil, fmt.Errorf("reading earlier results: %w", err)
		}
	}
	return decodeResult(content)
}

// keep writes a table as a file, and into the document if there is one. What it says beside the table comes first.
func (o *options) keep(mode string, t *table, beside ...string) error {
	var content bytes.Buffer
	fmt.Fprintf(&content, "%s, %s.\n", machine(), time.Now().Format(time.DateOnly))
	for _, line := range beside {
		fmt.Fprintln(&content, line)
	}
	fmt.Fprintln(&content)
	t.markdown(&content)
	if _, err := o.save(o.label+"-"+mode+".md", content.Bytes()); err != nil {
		return err
	}
	return o.replace(mode, content.Bytes())
}

// replace puts figures between their marks in the document.
func (o *options) replace(mode string, figures []byte) error {
	if o.document == "" {
		return nil
	}
	content, err := os.ReadFile(o.document)
	if err != nil {
		return fmt.Errorf("reading the document: %w", err)
	}
	replaced, err := replaceBetween(content, "<!-- bench:"+mode+" -->\n", "<!-- /bench -->", figures)
	if err != nil {
		return fmt.Errorf("replacing figures in %s: %w", o.document, err)
	}
	if err := os.WriteFile(o.document, replaced, 0o644); err != nil {
		return fmt.Errorf("writing the document: %w", err)
	}
	return nil
}

func replaceBetween(content []byte, begin, end string, by []byte) ([]byte, error) {
	before, rest, found := bytes.Cut(content, []byte(begin))
	_, after, closed := bytes.Cut(rest, []byte(end))
	if !found || !closed {
		return nil, fmt.Errorf("there is no %q with %q after it", strings.TrimSpace(begin), end)
	}
	return slices.Concat(before, []byte(begin), []byte("\n"), by, []byte("\n"), []byte(end), after), nil
}

// show prints a result, and writes it as a file for later runs, as a document and as a picture.
func (o *options) show(out io.Writer, r *Result) error {
	against, err := o.other()
	if err != nil {
		return err
	}
	var document bytes.Buffer
	fmt.Fprintf(&document, "%d objects of each phase at once; %s, %s.\n\n", o.objects, r.Machine, r.Date)
	fmt.Fprintf(out, "\n%s, %s, %d objects at once\n\n", r.Label, r.Machine, o.objects)
	r.summary(o.isOwn()).text(out)
	fmt.Fprintln(out)
	r.detail().text(out)
	r.summary(o.isOwn()).markdown(&document)
	fmt.Fprintln(&document)
	r.detail().markdown(&document)
	encoded, err := r.encode()
	if err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, file := range []struct {
		extension string
		content   []byte
	}{{".json", encoded}, {".md", document.Bytes()}, {".svg", draw(r, against)}} {
		path, err := o.save(r.Label+file.extension, file.content)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, "wrote", path)
	}
	if err := o.replace(o.mode, document.Bytes()); err != nil {
		return err
	}
	if o.document != "" {
		if err := os.WriteFile(strings.TrimSuffix(o.document, filepath.Ext(o.document))+".svg", draw(r, against), 0o644); err != nil {
			return fmt.Errorf("writing the picture: %w", err)
		}
	}
	if o.isOwn() {
		for _, fault := range overspent(r) {
			fmt.Fprintln(out, "over budget:", fault)
		}
	}
	return nil
}
