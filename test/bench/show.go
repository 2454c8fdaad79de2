// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"os"
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

// document writes a table as a file.
func (o *options) document(mode string, t *table) error {
	var content bytes.Buffer
	t.markdown(&content)
	_, err := o.save(o.label+"-"+mode+".md", content.Bytes())
	return err
}

// show prints a result, and writes it as a file for later runs, as a document and as a picture.
func (o *options) show(out io.Writer, r *Result) error {
	against, err := o.other()
	if err != nil {
		return err
	}
	var document bytes.Buffer
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
	if o.isOwn() {
		for _, fault := range overspent(r) {
			fmt.Fprintln(out, "over budget:", fault)
		}
	}
	return nil
}
