// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
)

// take writes a film of one process, a picture each half second; an empty one is a scrape without an answer.
func take(t *testing.T, expect string, pictures ...string) *Film {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "sample")
	files := map[string]string{expectFile: expect}
	for i, text := range pictures {
		name, kind := fmt.Sprintf("%06d-provisioner", 500*i), ".prom"
		if text == "" {
			kind = ".down"
		}
		files[name+kind] = text
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	film, err := LoadFilm(dir)
	if err != nil {
		t.Fatal(err)
	}
	return film
}

// TestFilm: half a second between two pictures is five minutes; spans of time grow with it, and nothing else does.
func TestFilm(t *testing.T) {
	film := take(t, "B\nA\n",
		"# TYPE x_total counter\nx_total{class=\"a\"} 1\ncsi_tandem_oldest_pending_seconds{kind=\"X\"} 0.5\nother_seconds 7\n",
		"x_total{class=\"a\"} 4\ncsi_tandem_oldest_pending_seconds{kind=\"X\"} 1\nother_seconds 7\n", "")
	if !slices.Equal(film.Expect, []string{"A", "B"}) || film.End.Sub(film.Start) != 10*time.Minute {
		t.Errorf("it is about %v, and lasts for %s", film.Expect, film.End.Sub(film.Start))
	}
	for expression, want := range map[string][2]float64{
		`up{job="csi-tandem", instance="provisioner"}`:                              {1, 0},
		`max_over_time(csi_tandem_oldest_pending_seconds{kind="X"}[1h])`:            {300, 600},
		`max_over_time(other_seconds[1h])`:                                          {7, 7},
		`count_over_time(x_total{class="a", namespace="driver"}[1m])`:               {1, 2},
		`x_total{class="a"} offset 10m or on() vector(0)`:                           {0, 1},
		`sum(count by (pod) ({pod="provisioner-0", __name__=~"up|other_seconds"}))`: {2, 1},
	} {
		matrix, err := film.Range(t.Context(), expression, time.Minute)
		if err != nil || len(matrix) == 0 {
			t.Errorf("%s: %v, %v", expression, matrix, err)
			continue
		}
		first, last := matrix[0].Floats[0].F, matrix[len(matrix)-1].Floats[len(matrix[len(matrix)-1].Floats)-1].F
		if last != want[1] && expression[0] != 'c' || first != want[0] {
			t.Errorf("%s begins with %v and ends with %v, want %v", expression, first, last, want)
		}
	}
}

// TestFiring: an alert with a time fires only after it has held for that long without a gap, whichever series it is about.
func TestFiring(t *testing.T) {
	on, off := "bad 1\n", "bad 0\n"
	film := take(t, "", off, on, on, on, off, on, off)
	for minutes, want := range map[int]bool{0: true, 10: true, 14: true, 15: false, 20: false} {
		rule := rulefmt.Rule{Alert: "X", Expr: "bad == 1", For: model.Duration(time.Duration(minutes) * time.Minute)}
		firing, err := film.Firing(t.Context(), []rulefmt.Rule{rule})
		if err != nil || (len(firing) == 1) != want {
			t.Errorf("after %d minutes: %v, %v", minutes, firing, err)
		}
	}
	if _, err := film.Firing(t.Context(), []rulefmt.Rule{{Alert: "X", Expr: "bad =="}}); err == nil {
		t.Error("an expression that cannot be read fires never, and that is all")
	}
}

func TestBadFilms(t *testing.T) {
	dir := t.TempDir()
	if _, err := LoadFilm(dir); err == nil {
		t.Error("a film that is about nothing is shown")
	}
	if err := os.WriteFile(filepath.Join(dir, expectFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadFilm(dir); err == nil {
		t.Error("a film without pictures is shown")
	}
	if err := os.WriteFile(filepath.Join(dir, "000000-x.prom"), []byte("no metrics {"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadFilm(dir); err == nil {
		t.Error("a picture that cannot be read is shown")
	}
}
