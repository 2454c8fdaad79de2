// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/kube"
	"github.com/csi-tandem/csi-tandem/test/kit"
)

// journal remembers in which order things happened.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, ", ")
}

// being is a process under test, beside a driver's socket and an API server in memory.
type being struct {
	*life
	t       *testing.T
	api     *kit.API
	driver  *plugin
	socket  string
	journal *journal
	end     context.CancelFunc
	result  chan error
}

// conceive makes a process that has not begun. Its one runnable notes when it works and when it stops.
func conceive(t *testing.T, change func(*Program)) *being {
	t.Helper()
	b := &being{
		t: t, api: kit.NewAPI(clock.RealClock{}, &kit.Log{}), socket: filepath.Join(t.TempDir(), "s"), journal: &journal{},
		driver: &plugin{name: "d.example", can: []csi.ControllerServiceCapability_RPC_Type{csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME}},
	}
	program := sample()
	program.Lease = SanitizedLease
	program.Options.CSIAddress, program.Options.Timeout = b.socket, 5*time.Second
	program.Options.Election = Election{
		Namespace: "ns", LeaseDuration: 2 * time.Second, RenewDeadline: time.Second, RetryPeriod: 100 * time.Millisecond,
	}
	program.Setup = func(_ context.Context, e *Env) ([]Runnable, error) {
		return []Runnable{b.worker("room", "", e.Claims())}, nil
	}
	if change != nil {
		change(&program)
	}
	p := newProcess(program, &bytes.Buffer{}, &bytes.Buffer{})
	b.life = p.begun(b.api, b.api, "host")
	return b
}

func (b *being) worker(name, lease string, needs ...kube.Runner) Runnable {
	return Runnable{Name: name, Lease: lease, Needs: needs, Run: func(ctx context.Context) error {
		b.journal.add(name + " works")
		<-ctx.Done()
		b.journal.add(name + " stops")
		return ctx.Err()
	}}
}

func (b *being) begin() {
	ctx, cancel := context.WithCancel(b.t.Context())
	b.end, b.result = cancel, make(chan error, 1)
	go func() { b.result <- b.run(ctx) }()
	b.t.Cleanup(func() { _ = b.finish() })
}

// finish ends the process as SIGTERM does, and returns what it ended with.
func (b *being) finish() error {
	b.end()
	return b.ended()
}

func (b *being) ended() error {
	b.t.Helper()
	select {
	case err, ok := <-b.result:
		if ok {
			close(b.result)
		}
		return err
	case <-time.After(20 * time.Second):
		b.t.Fatal("the process does not end")
		return nil
	}
}

// until waits for what must happen.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func (b *being) untilJournal(want string) {
	b.t.Helper()
	until(b.t, want, func() bool { return b.journal.String() == want })
}

func (b *being) fetch(path string) (int, string) {
	answer := httptest.NewRecorder()
	b.routes().ServeHTTP(answer, httptest.NewRequestWithContext(b.t.Context(), http.MethodGet, path, nil))
	return answer.Code, answer.Body.String()
}

func (b *being) holder(lease string) string {
	found, ok := kit.Read[*coordinationv1.Lease](b.api, kube.Key{Namespace: "ns", Name: lease})
	if !ok || found.Spec.HolderIdentity == nil {
		return ""
	}
	return *found.Spec.HolderIdentity
}

func TestDriverMayComeLate(t *testing.T) {
	b := conceive(t, nil)
	b.begin()
	until(t, "unready for want of a driver", func() bool {
		code, text := b.fetch("/readyz")
		return code == http.StatusServiceUnavailable && strings.Contains(text, "not ok: driver: waiting for its socket "+b.socket)
	})
	if code, _ := b.fetch("/healthz"); code != http.StatusOK {
		t.Errorf("a missing driver is no reason to kill the process: %d", code)
	}
	b.driver.unready = true
	b.driver.serve(t, b.socket)
	until(t, "unready while the driver is", func() bool {
		_, text := b.fetch("/readyz")
		return strings.Contains(text, "waiting until it says that it is ready")
	})
	if b.driver.identified() > 0 {
		t.Error("asked for the name of a driver that is not ready")
	}
	b.driver.change(func(p *plugin) { p.unready = false })
	b.untilJournal("room works")
	until(t, "ready", func() bool { code, _ := b.fetch("/readyz"); return code == http.StatusOK })
	if err := b.finish(); err != nil {
		t.Errorf("ended with %v", err)
	}
	b.untilJournal("room works, room stops")
}

func TestDriverIsMetAgain(t *testing.T) {
	volumes, clones := csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csi.ControllerServiceCapability_RPC_CLONE_VOLUME
	for _, c := range []struct {
		name   string
		again  *plugin
		saying string
	}{
		{"the same one", &plugin{name: "d.example", can: []csi.ControllerServiceCapability_RPC_Type{volumes}}, ""},
		{"another name", &plugin{name: "e.example", can: []csi.ControllerServiceCapability_RPC_Type{volumes}}, "the driver was d.example and came back as e.example"},
		{"other capabilities", &plugin{name: "d.example", can: []csi.ControllerServiceCapability_RPC_Type{volumes, clones}}, "came back with other capabilities (were: CREATE_DELETE_VOLUME; are: CLONE_VOLUME CREATE_DELETE_VOLUME)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := conceive(t, nil)
			stop := b.driver.serve(t, b.socket)
			b.begin()
			b.untilJournal("room works")
			stop()
			until(t, "the loss is noticed without any call", func() bool {
				_, text := b.fetch("/readyz")
				return strings.Contains(text, "not ok: driver: lost the connection")
			})
			c.again.serve(t, b.socket)
			if c.saying == "" {
				until(t, "ready again", func() bool { code, _ := b.fetch("/readyz"); return code == http.StatusOK })
				b.untilJournal("room works")
				return
			}
			err := b.ended()
			if words := (*lastWords)(nil); !errors.As(err, &words) || !strings.Contains(err.Error(), c.saying) {
				t.Errorf("ended with %v", err)
			}
			b.untilJournal("room works, room stops")
		})
	}
}

func TestDriverWithoutWhatIsNeededEndsTheProcess(t *testing.T) { // S92
	b := conceive(t, func(p *Program) {
		p.Requires = []csi.ControllerServiceCapability_RPC_Type{csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT}
	})
	b.driver.serve(t, b.socket)
	b.begin()
	err := b.ended()
	if err == nil || !strings.Contains(err.Error(), "the driver d.example does not have the capability CREATE_DELETE_SNAPSHOT") {
		t.Fatalf("ended with %v", err)
	}
	if code := b.exit(err); code != exitFailure {
		t.Errorf("exit %d", code)
	}
}

func TestNoDriver(t *testing.T) {
	b := conceive(t, func(p *Program) { p.Options.CSIAddress = "" })
	b.begin()
	b.untilJournal("room works")
	until(t, "ready, and not a word of a driver", func() bool {
		code, text := b.fetch("/readyz")
		return code == http.StatusOK && !strings.Contains(text, "driver")
	})
}

func TestErrorOfARoomEndsTheProcess(t *testing.T) {
	for name, setup := range map[string]func(context.Context, *Env) ([]Runnable, error){
		"setting up: broken": func(context.Context, *Env) ([]Runnable, error) { return nil, errors.New("broken") },
		"room: broken": func(context.Context, *Env) ([]Runnable, error) {
			return []Runnable{{Name: "room", Run: func(context.Context) error { return errors.New("broken") }}}, nil
		},
	} {
		b := conceive(t, func(p *Program) { p.Setup, p.Options.CSIAddress = setup, "" })
		b.begin()
		if err := b.ended(); err == nil || err.Error() != name {
			t.Errorf("%s: ended with %v", name, err)
		}
	}
}
