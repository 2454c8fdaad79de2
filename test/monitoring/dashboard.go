// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Panel is what a panel of a dashboard shows.
type Panel struct {
	Title   string   `json:"title"`
	Type    string   `json:"type"`
	Targets []target `json:"targets"`
	GridPos grid     `json:"gridPos"`
}

type target struct {
	Expr   string `json:"expr"`
	Legend string `json:"legendFormat"`
	RefID  string `json:"refId"`
}

type grid struct{ X, Y, W, H int }

// Expressions are those of the panel, with what Grafana would put in place of its variables.
func (p Panel) Expressions() []string {
	variables := strings.NewReplacer("$__rate_interval", "15m", "$job", ".*")
	var all []string
	for _, t := range p.Targets {
		all = append(all, variables.Replace(t.Expr))
	}
	return all
}

// LoadPanels reads the panels of a dashboard that show something.
func LoadPanels(file string) ([]Panel, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var dashboard struct{ Panels []Panel }
	if err := json.Unmarshal(text, &dashboard); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var panels []Panel
	for _, p := range dashboard.Panels {
		if p.Type != "row" {
			panels = append(panels, p)
		}
	}
	return panels, nil
}

// overlap tells whether two panels are in the same place.
func (g grid) overlap(other grid) bool {
	return g.X < other.X+other.W && other.X < g.X+g.W && g.Y < other.Y+other.H && other.Y < g.Y+g.H
}
