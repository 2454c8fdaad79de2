// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// browserSilence is how long a browser may take for one answer. It is far more than any takes.
const browserSilence = time.Minute

// browser is a headless Chromium, spoken to over two pipes in the DevTools protocol: one JSON document after another, each
// ended by a zero byte.
type browser struct {
	*testing.T
	out     io.Writer
	answers chan message
	number  int
	session string
	// said is what the page has put on the console, errors of the network and of the policy for contents among it.
	mu   sync.Mutex
	said []string
}

type message struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// findBrowser is the path of a browser, empty where there is none.
func findBrowser() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// openBrowser starts a browser with one page, and ends it with the test.
func openBrowser(t *testing.T, path string) *browser {
	t.Helper()
	cmd := exec.Command(path, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
		"--no-first-run", "--force-color-profile=srgb", "--user-data-dir="+t.TempDir(), "about:blank")
	toBrowser, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, fromBrowser, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{toBrowser, fromBrowser} // as 3 and 4
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	toBrowser.Close()
	fromBrowser.Close()
	b := &browser{T: t, out: in, answers: make(chan message, 100)}
	heard := make(chan struct{})
	go func() { defer close(heard); b.listen(out) }()
	t.Cleanup(func() {
		in.Close() // which ends it
		late := time.AfterFunc(browserSilence, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		late.Stop()
		<-heard
		out.Close()
	})
	var target struct{ TargetID string }
	b.ask("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.ask("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		b.ask(domain+".enable", nil, nil)
	}
	return b
}

func (b *browser) listen(out io.Reader) {
	defer close(b.answers)
	reader := bufio.NewReader(out)
	for {
		text, err := reader.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(text[:len(text)-1], &m) != nil {
			continue
		}
		switch m.Method {
		case "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded":
			b.mu.Lock()
			b.said = append(b.said, string(m.Params))
			b.mu.Unlock()
		case "", "Page.loadEventFired":
			b.answers <- m
		}
	}
}

// ask sends a command and waits for its answer.
func (b *browser) ask(method string, params, result any) {
	b.Helper()
	b.number++
	request := map[string]any{"id": b.number, "method": method}
	if params != nil {
		request["params"] = params
	}
	if b.session != "" {
		request["sessionId"] = b.session
	}
	text, err := json.Marshal(request)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := b.out.Write(append(text, 0)); err != nil {
		b.Fatalf("the browser does not listen: %v", err)
	}
	answer := b.await(method, func(m message) bool { return m.ID == b.number })
	if answer.Error != nil {
		b.Fatalf("%s: %s", method, answer.Error)
	}
	if result == nil {
		return
	}
	if err := json.Unmarshal(answer.Result, result); err != nil {
		b.Fatalf("%s: %v", method, err)
	}
}

func (b *browser) await(what string, is func(message) bool) message {
	b.Helper()
	late := time.After(browserSilence)
	for {
		select {
		case m, ok := <-b.answers:
			if !ok {
				b.Fatalf("the browser has ended, and %s was not answered", what)
			}
			if is(m) {
				return m
			}
		case <-late:
			b.Fatalf("the browser does not answer %s", what)
		}
	}
}

// visit loads a page in a window of some width.
func (b *browser) visit(url string, width int) {
	b.Helper()
	b.ask("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
	b.ask("Page.navigate", map[string]any{"url": url}, nil)
	b.await("loading "+url, func(m message) bool { return m.Method == "Page.loadEventFired" })
}

// evaluate gives the value of an expression as text.
func (b *browser) evaluate(expression string) string {
	b.Helper()
	var answer struct {
		Result struct{ Value any }
	}
	b.ask("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &answer)
	return fmt.Sprint(answer.Result.Value)
}

// picture writes what the whole page looks like.
func (b *browser) picture(file string) {
	b.Helper()
	var shot struct{ Data string }
	b.ask("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &shot)
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(file, png, 0o600); err != nil {
		b.Fatal(err)
	}
}

// checkPage looks at a page as people do, on a telephone and on a desk: nothing is wider than the window, nothing goes to the
// console, and the words are there to be read. With CSI_TANDEM_PAGES it leaves a picture of each.
func (b *browser) checkPage(name, address string, words ...string) {
	b.Helper()
	for _, width := range []int{400, 1200} {
		b.visit("http://"+address+"/", width)
		if got := b.evaluate("document.documentElement.scrollWidth"); got != fmt.Sprint(width) {
			b.Errorf("the page of the %s is %s wide in a window of %d", name, got, width)
		}
		text := b.evaluate("document.body.innerText")
		for _, word := range words {
			if !strings.Contains(text, word) {
				b.Errorf("the %s shows no %q at a width of %d: %s", name, word, width, text)
			}
		}
		if scripts := b.evaluate("document.scripts.length"); scripts != "0" {
			b.Errorf("the page of the %s has %s scripts", name, scripts)
		}
		if dir := os.Getenv("CSI_TANDEM_PAGES"); dir != "" {
			b.picture(filepath.Join(dir, fmt.Sprintf("%s-%d.png", name, width)))
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.said) > 0 {
		b.Errorf("on the console of the %s: %s", name, strings.Join(b.said, "\n"))
	}
}
