// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// evaluation is how often Prometheus evaluates rules.
const evaluation = time.Minute

// LoadAlerts reads a file of rules as Prometheus does, and refuses what it would refuse.
func LoadAlerts(file string) ([]rulefmt.Rule, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	groups, faults := rulefmt.Parse(text, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	var rules []rulefmt.Rule
	for _, group := range groups.Groups {
		rules = append(rules, group.Rules...)
	}
	return rules, nil
}

// Firing are the names of the alerts that fire at some time of the film, with the kind of the objects that they are about, sorted.
func (f *Film) Firing(ctx context.Context, rules []rulefmt.Rule) ([]string, error) {
	firing := map[string]bool{}
	for _, rule := range rules {
		matrix, err := f.Range(ctx, rule.Expr, evaluation)
		if err != nil {
			return nil, fmt.Errorf("alert %s: %w", rule.Alert, err)
		}
		for _, series := range matrix {
			var times []int64
			for _, p := range series.Floats {
				times = append(times, p.T)
			}
			if longest(times, evaluation) >= time.Duration(rule.For) {
				name := rule.Alert
				if kind := series.Metric.Get("kind"); kind != "" {
					name += "/" + kind
				}
				firing[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(firing)), nil
}

// longest is the longest time without a gap. The first evaluation that finds something has lasted for nothing.
func longest(millis []int64, step time.Duration) time.Duration {
	var best, begun int64
	for i, at := range millis {
		if i == 0 || at-millis[i-1] > step.Milliseconds() {
			begun = at
		}
		best = max(best, at-begun)
	}
	return time.Duration(best) * time.Millisecond
}
