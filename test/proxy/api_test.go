// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const maps = "/api/v1/namespaces/n/configmaps"

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"k": name}}
}

// send is one request without the retries of a client library. An error means that there was no answer.
func (b *bench) send(ctx context.Context, method, target, body string) (*http.Response, string, error) {
	r, err := http.NewRequestWithContext(ctx, method, b.config.Host+target, strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "tester/1")
	response, err := b.http.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return response, string(content), err
}

func (b *bench) create(ctx context.Context, name string) (int, error) {
	response, _, err := b.send(ctx, "POST", maps, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"`+name+`"}}`)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, nil
}

func TestWholeLifeOfAnObjectPasses(t *testing.T) {
	for _, contentType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		t.Run(contentType, func(t *testing.T) {
			b := newBench(t)
			client := b.clientset(t, contentType).CoreV1().ConfigMaps("n")
			created, err := client.Create(t.Context(), configMap("a"), metav1.CreateOptions{})
			if err != nil || created.Data["k"] != "a" {
				t.Fatalf("created %v, %v", created, err)
			}
			if read, err := client.Get(t.Context(), "a", metav1.GetOptions{}); err != nil || read.Data["k"] != "a" {
				t.Fatalf("read %v, %v", read, err)
			}
			if _, err := client.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"data":{}}`), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := client.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"POST a", "PATCH a", "DELETE a"}, b.server.effects()); diff != "" {
				t.Errorf("at the server (-want +got):\n%s", diff)
			}
			var got []string
			for _, q := range b.api.Requests() {
				got = append(got, q.Verb+" "+q.Resource+" "+q.Key())
			}
			want := []string{"create configmaps n/a", "get configmaps n/a", "patch configmaps n/a", "delete configmaps n/a"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("in the log (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRequestsAndAnswersPassUnchanged(t *testing.T) {
	b := newBench(t)
	body := `{"metadata":{"name":"a"},  "odd":"spacing and ü"}`
	response, content, err := b.send(t.Context(), "POST", maps+"?fieldManager=m%2Fn", body)
	if err != nil {
		t.Fatal(err)
	}
	if response.ProtoMajor != 2 || response.StatusCode != http.StatusCreated || content != body {
		t.Errorf("answered %s %s %q", response.Proto, response.Status, content)
	}
	if diff := cmp.Diff([]string{"a", "b"}, response.Header.Values("X-Several")); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	arrived := b.server.requests()[0]
	if got := arrived.Header.Get("Authorization"); got != "Bearer "+token {
		t.Errorf("the server was told %q", got)
	}
	if got := arrived.RequestURI; got != maps+"?fieldManager=m%2Fn" {
		t.Errorf("the server was asked for %q", got)
	}
	if arrived.ProtoMajor != 2 || arrived.UserAgent() != "tester/1" || arrived.Header.Get("X-Forwarded-For") != "" {
		t.Errorf("the server got %s %v", arrived.Proto, arrived.Header)
	}
	logged := b.api.Requests()[0]
	if logged.Agent != "tester/1" || logged.Code != 201 || logged.Answer != 201 || logged.Effect != 1 || logged.Finished.Before(logged.Arrived) {
		t.Errorf("logged %+v", logged)
	}
}

func TestWatchIsStreamed(t *testing.T) {
	b := newBench(t)
	lines := b.watch(t)
	for _, name := range []string{"a", "b"} {
		if _, err := b.create(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		// The second is created only when the first has come: nothing waits for more to fill a buffer.
		if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, `"name":"`+name+`"`) {
			t.Fatalf("read %q, %v", line, err)
		}
	}
	if got := b.api.Count(Match{Verb: "watch", Resource: "configmaps"}, http.StatusOK); got != 1 {
		t.Errorf("%d open watches are in the log, want 1", got)
	}
}

// watch opens a watch and waits until the server has it.
func (b *bench) watch(t *testing.T) *bufio.Reader {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", b.config.Host+maps+"?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := b.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return bufio.NewReader(response.Body)
}

func TestKubeconfigLeadsThrough(t *testing.T) {
	b := newBench(t)
	dir := t.TempDir()
	file, err := b.api.Kubeconfig(dir, "of-a-service-account")
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(file) != dir {
		t.Errorf("written to %s", file)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file with the token is %v, %v", info.Mode(), err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config)
	defer closeIdle(client)
	if _, err := client.CoreV1().ConfigMaps("n").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := b.server.requests()[0].Header.Get("Authorization"); got != "Bearer of-a-service-account" {
		t.Errorf("the server was told %q", got)
	}
}

func TestClientsThatDoNotKnowTheAuthorityAreNotServed(t *testing.T) {
	b := newBench(t)
	response, err := http.Get("https://" + b.api.Address() + "/version")
	if err == nil {
		_ = response.Body.Close()
		t.Error("a client without the authority was served")
	}
}

func TestWritesAreCounted(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"a", "a", "b"} {
		if _, err := b.create(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	b.api.Fail(Match{Verb: "create"}, Broken, 1)
	if _, err := b.create(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	if sent, conflicts := b.api.Writes(Match{Resource: "configmaps"}); sent != 2 || conflicts != 1 {
		t.Errorf("counted %d writes and %d conflicts, want 2 and 1", sent, conflicts)
	}
	if got := b.api.Count(Match{Verb: AnyWrite}); got != 4 {
		t.Errorf("counted %d requests, want 4", got)
	}
	b.api.ClearRequests()
	if got := b.api.Count(Match{}); got != 0 {
		t.Errorf("%d requests are left", got)
	}
}

func TestDownRefusesAndUpIsAtTheSameAddress(t *testing.T) {
	b := newBench(t)
	if _, err := b.create(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		lines := b.watch(t)
		if err := b.api.Down(); err != nil {
			t.Fatal(err)
		}
		if _, err := lines.ReadString('\n'); err == nil {
			t.Error("a watch outlived the server")
		}
		if _, err := net.Dial("tcp", b.api.Address()); err == nil {
			t.Error("a connection was accepted while down")
		}
		if taken, err := net.Listen("tcp", b.api.Address()); err == nil {
			_ = taken.Close()
			t.Error("somebody else could take the port")
		}
		if err := b.api.Up(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.send(t.Context(), "GET", maps+"/a", ""); err != nil {
			t.Errorf("after coming up: %v", err)
		}
	}
}

func TestServerThatIsGoneGivesNoAnswer(t *testing.T) {
	b := newBench(t)
	b.server.Listener.Close()
	b.server.CloseClientConnections()
	if code, err := b.create(t.Context(), "a"); err == nil {
		t.Errorf("answered %d for a server that is gone", code)
	}
	logged := b.api.Requests()[0]
	if logged.Code != 0 || logged.Answer != 0 {
		t.Errorf("logged %+v", logged)
	}
}

func TestCloseEndsWhatHangs(t *testing.T) {
	b := newBench(t)
	fault := b.api.Hang(Match{Verb: "create"}, Always)
	ended := make(chan error, 1)
	go func() {
		_, err := b.create(context.Background(), "a")
		ended <- err
	}()
	if err := fault.AwaitHits(soon(t), 1); err != nil {
		t.Fatal(err)
	}
	if err := b.api.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("a request that hung was answered")
	}
	if got := b.server.effects(); len(got) > 0 {
		t.Errorf("the server did %v", got)
	}
}
