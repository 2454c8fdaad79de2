// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/rulefmt"
)

// filmsVariable names the folder in which there is a folder for each film.
const filmsVariable = "CSI_TANDEM_FILMS"

const (
	alertsFile    = "../../deploy/monitoring/alerts.rules"
	dashboardFile = "../../deploy/monitoring/dashboard.json"
)

func films(t *testing.T) []*Film {
	t.Helper()
	dir := os.Getenv(filmsVariable)
	if dir == "" {
		t.Skip("there are no films: `make monitoring` takes them, and names their folder in " + filmsVariable)
	}
	folders, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	var all []*Film
	for _, folder := range folders {
		film, err := LoadFilm(folder)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, film)
	}
	if len(all) == 0 {
		t.Fatalf("there are no films in %s", dir)
	}
	return all
}

func alerts(t *testing.T) []rulefmt.Rule {
	t.Helper()
	rules, err := LoadAlerts(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// TestAlertsOnFilms: each alert fires on what both programs have really shown while its reason was staged, no other one does, and on a film in
// which nothing is wrong there is silence. It catches an expression about a metric, a label or a step that is called otherwise.
func TestAlertsOnFilms(t *testing.T) {
	rules := alerts(t)
	proved, calm := map[string]bool{}, 0
	for _, film := range films(t) {
		t.Run(film.Name, func(t *testing.T) {
			firing, err := film.Firing(t.Context(), rules)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(firing, film.Expect) {
				t.Errorf("firing are %v, and the film is about %v", firing, film.Expect)
			}
			for _, name := range firing {
				alert, _, _ := strings.Cut(name, "/")
				proved[alert] = true
			}
			if len(film.Expect) == 0 {
				calm++
			}
		})
	}
	for _, rule := range rules {
		if !proved[rule.Alert] {
			t.Errorf("no film makes alert %s fire", rule.Alert)
		}
	}
	if calm == 0 {
		t.Error("there is no film in which nothing is wrong")
	}
}

// TestPanelsOnFilms: each expression of the dashboard finds something in some film.
func TestPanelsOnFilms(t *testing.T) {
	all := films(t)
	panels, err := LoadPanels(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, panel := range panels {
		for _, expression := range panel.Expressions() {
			found := 0
			for _, film := range all {
				matrix, err := film.Range(t.Context(), expression, 10*evaluation)
				if err != nil {
					t.Fatalf("panel %q: %s: %v", panel.Title, expression, err)
				}
				found += len(matrix)
			}
			if found == 0 {
				t.Errorf("panel %q is empty in all films: %s", panel.Title, expression)
			}
		}
	}
}

// TestAlertsAreHelp: whoever is woken reads what is wrong and what to do.
func TestAlertsAreHelp(t *testing.T) {
	for _, rule := range alerts(t) {
		keys := slices.Sorted(maps.Keys(rule.Annotations))
		if !slices.Equal(keys, []string{"remedy", "summary"}) || len(rule.Annotations["remedy"]) < 60 || len(rule.Annotations["summary"]) < 20 {
			t.Errorf("%s: annotations are %v", rule.Alert, rule.Annotations)
		}
		if !slices.Contains([]string{"info", "warning", "critical"}, rule.Labels["severity"]) {
			t.Errorf("%s: severity %q", rule.Alert, rule.Labels["severity"])
		}
		if !strings.Contains(rule.Expr, `job="csi-tandem"`) || !strings.HasPrefix(rule.Alert, "CSITandem") {
			t.Errorf("%s may be about others: %s", rule.Alert, rule.Expr)
		}
	}
}

func TestDashboardIsWhole(t *testing.T) {
	panels, err := LoadPanels(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	if len(panels) < 10 {
		t.Errorf("there are %d panels", len(panels))
	}
	for i, panel := range panels {
		if panel.Title == "" || panel.GridPos.W == 0 || panel.GridPos.X+panel.GridPos.W > 24 || len(panel.Targets) == 0 {
			t.Errorf("panel %d: %+v", i, panel)
		}
		for _, other := range panels[:i] {
			if panel.GridPos.overlap(other.GridPos) || panel.Title == other.Title {
				t.Errorf("%q and %q are in one place, or have one title", panel.Title, other.Title)
			}
		}
		for _, expression := range panel.Expressions() {
			if strings.Contains(expression, "$") {
				t.Errorf("%q: a variable is left in %s", panel.Title, expression)
			}
		}
	}
}
