// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/csi-tandem/csi-tandem/examples/driver/control"
	"github.com/csi-tandem/csi-tandem/test/stage"
)

// canary is the value of the secret, with characters that change when they are written in another way.
const canary = `canary-7d1e<&>"\q`

// forms are the ways in which it could have been written down.
func forms() []string {
	quoted := strings.Trim(fmt.Sprintf("%q", canary), `"`)
	asJSON, err := json.Marshal(canary)
	if err != nil {
		return nil // A string is always encoded; and a test fails that finds no form.
	}
	escaped := strings.Trim(string(asJSON), `"`)
	all := []string{canary, quoted, escaped, strings.Trim(fmt.Sprint([]byte(canary)), "[]"), hex.EncodeToString([]byte(canary))}
	for _, text := range []string{canary, quoted, escaped} {
		for shift := range 3 {
			all = append(all, inBase64(text, shift))
		}
	}
	return all
}

// inBase64 is what of a text is always the same in base64 when so many bytes more than a whole group stand before it.
func inBase64(text string, shift int) string {
	encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + text))
	return encoded[4*min(shift, 1) : (shift+len(text))/3*4]
}

var dumped = regexp.MustCompile(`(?m)^\s*[0-9a-f]{8} ((?: +[0-9a-f]{2}){1,16})`)

// undump puts together what client-go logs of binary bodies, sixteen bytes in a line.
func undump(log []byte) []byte {
	var all []byte
	for _, line := range dumped.FindAllSubmatch(log, -1) {
		raw, err := hex.DecodeString(string(bytes.ReplaceAll(line[1], []byte(" "), nil)))
		if err != nil {
			continue // It only looked like one.
		}
		all = append(all, raw...)
	}
	return all
}

func TestUndump(t *testing.T) {
	log := "I1130 a line\n\t" + strings.ReplaceAll(hex.Dump([]byte("some words before it "+canary+" and some after")), "\n", "\n\t") + "\nI1130 another line"
	if got := undump([]byte(log)); !strings.Contains(string(got), canary) {
		t.Errorf("got %q of\n%s", got, log)
	}
}

// TestForms: each form is found in a text that holds the secret in that way, wherever it stands.
func TestForms(t *testing.T) {
	asJSON, err := json.Marshal(map[string]string{"token": canary})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"raw": "token=" + canary, "quoted": fmt.Sprintf("%q", "a "+canary+" b"), "JSON": string(asJSON),
		"bytes": fmt.Sprint([]byte("a" + canary)), "hex": hex.EncodeToString([]byte("a" + canary + "b")),
		"base64 0": base64.StdEncoding.EncodeToString([]byte("abc" + canary + "b")), "base64 1": base64.StdEncoding.EncodeToString([]byte("a" + canary)),
		"base64 2": base64.StdEncoding.EncodeToString([]byte("ab" + canary + "b")), "base64 of JSON": base64.StdEncoding.EncodeToString(asJSON),
	} {
		if !slices.ContainsFunc(forms(), func(form string) bool { return strings.Contains(text, form) }) {
			t.Errorf("%s: not found in %s", name, text)
		}
	}
	if i := slices.IndexFunc(forms(), func(form string) bool { return len(form) < 12 }); i >= 0 {
		t.Errorf("form %d is too short to mean anything: %q", i, forms()[i])
	}
}

// secretLeaks looks for the secret in all that was written down: logs, objects and their statuses, events, the records that the
// sidecars keep, and what they say over HTTP and when they are asked to explain.
func (c *crew) secretLeaks(ctx context.Context) []string {
	written, err := c.writings(ctx)
	if err != nil {
		return []string{"looking for the secret: " + err.Error()}
	}
	var found []string
	for where, text := range written {
		if len(text) == 0 && !strings.HasPrefix(where, "the dumps") {
			found = append(found, "nothing was looked at in "+where)
		}
		for _, form := range forms() {
			if bytes.Contains(text, []byte(form)) {
				found = append(found, fmt.Sprintf("the secret is in %s, as %s", where, form))
			}
		}
	}
	slices.Sort(found)
	return found
}

func (c *crew) writings(ctx context.Context) (map[string][]byte, error) {
	written := map[string][]byte{}
	for _, program := range programs {
		log, err := os.ReadFile(c.sidecars[program].Log)
		if err != nil {
			return nil, err
		}
		written["the log of the "+string(program)] = log
		written["the dumps in the log of the "+string(program)] = undump(log)
		for _, page := range []string{"/metrics", "/statusz", "/flagz", "/"} {
			said, err := c.page(ctx, program, page)
			if err != nil {
				return nil, err
			}
			written[page+" of the "+string(program)] = said
		}
	}
	v, err := c.look(ctx)
	if err != nil {
		return nil, err
	}
	objects := map[string]any{"the claims": v.claims, "the volumes": v.volumes, "the snapshots": v.snapshots, "the contents": v.contents}
	for _, namespace := range []string{c.ns, metav1.NamespaceDefault, stage.Namespace} {
		events, err := c.kube.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		records, err := c.kube.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		objects["the events in "+namespace], objects["the config maps in "+namespace] = events, records
	}
	for where, object := range objects {
		// As a person would read it: what the encoder of JSON escapes for web pages is found as it is.
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(object); err != nil {
			return nil, err
		}
		written[where] = text.Bytes()
	}
	return written, nil
}

// page is what a sidecar says over HTTP.
func (c *crew) page(ctx context.Context, program stage.Program, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.metrics[program]+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s of the %s: %s", path, program, answer.Status)
	}
	return io.ReadAll(answer.Body)
}

// explained is what a program says about an object, in both of its forms.
func (c *crew) explained(ctx context.Context, program stage.Program, object string) ([]byte, error) {
	var all []byte
	for _, format := range []string{"text", "json"} {
		// The socket is the driver's own, so that it is asked what it can do.
		cmd := exec.CommandContext(ctx, c.sidecars[program].Path, "explain", "-o", format, "-n", c.ns, "--csi-address="+c.cast.Socket,
			"--kubeconfig="+c.stage.Cluster.Kubeconfig(), object)
		said, err := cmd.CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %s", cmd, err, said)
		}
		all = append(all, said...)
	}
	return all, nil
}

// fail leaves a claim and a snapshot that the driver refuses, with all that is told about them.
func (c *crew) fail(ctx context.Context) error {
	const name = "failing"
	for _, method := range []string{"CreateVolume", "CreateSnapshot"} {
		if _, err := c.script.Fail(ctx, control.On(method), codes.Internal); err != nil {
			return err
		}
	}
	if err := errors.Join(c.makeClaim(ctx, name, nil), c.makeSnapshot(ctx, name, base)); err != nil {
		return err
	}
	return await(ctx, "the driver has refused both, and that was told", pace, func() (bool, string) {
		told := map[string]bool{}
		events, err := c.kube.CoreV1().Events(c.ns).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
		if err != nil {
			return unreadable(err)
		}
		for _, e := range events.Items {
			if strings.Contains(e.Message, "scripted Internal") {
				told[e.InvolvedObject.Kind] = true
			}
		}
		return told["PersistentVolumeClaim"] && told["VolumeSnapshot"], fmt.Sprint("told of ", told)
	})
}

// TestNoSecretAnywhere (B053): at the highest verbosity, with objects that succeed and objects that fail, the value of a
// secret that every call brings is nowhere: not raw, in base64, in JSON or in hex. Catches one that logs requests or the
// answers of the API server, that puts a driver's message into an event together with the request, and a record of open calls
// that keeps the secret's values and not its name.
func TestNoSecretAnywhere(t *testing.T) {
	s := theStage(t)
	c, err := newCrew(t.Context(), s, "canary", "--retry-interval-start=100ms", "--retry-interval-max=500ms", "-v=10")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.close(); err != nil {
			t.Error(err)
		}
	}()
	if err := c.makeBase(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.fail(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, leak := range c.secretLeaks(t.Context()) {
		t.Error(leak)
	}
	for program, objects := range map[stage.Program][]string{stage.Provisioner: {base, "failing"}, stage.Snapshotter: {base, "failing"}} {
		for _, object := range objects {
			said, err := c.explained(t.Context(), program, object)
			if err != nil {
				t.Error(err)
			}
			for _, form := range forms() {
				if bytes.Contains(said, []byte(form)) {
					t.Errorf("the secret is in what the %s explains about %s:\n%s", program, object, said)
				}
			}
		}
	}
	// Only a log that holds other bodies proves anything by not holding this one.
	if log, err := os.ReadFile(c.sidecars[stage.Provisioner].Log); err != nil || !bytes.Contains(undump(log), []byte("pvc-")) {
		t.Errorf("the log shows no bodies at all (error %v)", err)
	}
	for _, death := range c.deaths() {
		t.Errorf("A4: %s", death)
	}
}
