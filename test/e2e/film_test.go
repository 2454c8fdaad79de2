// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// between is how long after one another the pictures of a film are taken.
const between = 500 * time.Millisecond

// film is what the processes of a world answer to scrapes, in files that test/monitoring reads.
type film struct {
	*world
	dir   string
	begun time.Time
	// still counts the pictures of a film whose time stands still meanwhile; -1 for the others.
	still int
	// addresses are those of the processes by their names.
	addresses map[string]string
}

// newFilm begins a film about alerts.
func (w *world) newFilm(dir, name string, addresses map[string]string, alerts ...string) *film {
	w.Helper()
	f := &film{world: w, dir: filepath.Join(dir, name), begun: time.Now(), still: -1, addresses: addresses}
	w.mustNot(os.MkdirAll(f.dir, 0o700))
	w.mustNot(os.WriteFile(filepath.Join(f.dir, "expect"), []byte(strings.Join(alerts, "\n")), 0o600))
	return f
}

// shoot takes a picture of each process.
func (f *film) shoot() {
	f.Helper()
	at := time.Since(f.begun)
	if f.still >= 0 {
		at = time.Duration(f.still) * between
		f.still++
	}
	for name, address := range f.addresses {
		file, text := filepath.Join(f.dir, fmt.Sprintf("%08d-%s", at.Milliseconds(), name)), []byte(nil)
		answer, err := http.Get("http://" + address + "/metrics")
		if err == nil {
			text, err = io.ReadAll(answer.Body)
			answer.Body.Close()
		}
		if err != nil || answer.StatusCode != http.StatusOK {
			f.mustNot(os.WriteFile(file+".down", nil, 0o600))
			continue
		}
		f.mustNot(os.WriteFile(file+".prom", text, 0o600))
	}
}

// shootAll takes pictures of all films for some time.
func shootAll(films []*film, length time.Duration) {
	for begun := time.Now(); time.Since(begun) < length; time.Sleep(between) {
		for _, f := range films {
			f.shoot()
		}
	}
}
