// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// engine is that of a Prometheus with its own defaults, as far as they matter here.
var engine = promql.NewEngine(promql.EngineOpts{MaxSamples: 50_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute})

// Range evaluates an expression over the whole film.
func (f *Film) Range(ctx context.Context, expression string, step time.Duration) (promql.Matrix, error) {
	query, err := engine.NewRangeQuery(ctx, f, nil, expression, f.Start, f.End, step)
	if err != nil {
		return nil, err
	}
	defer query.Close()
	result := query.Exec(ctx)
	if result.Err != nil {
		return nil, result.Err
	}
	matrix, err := result.Matrix()
	if err != nil {
		return nil, fmt.Errorf("%s is no vector: %w", expression, err)
	}
	// The engine takes back what a result is made of.
	copied := make(promql.Matrix, 0, len(matrix))
	for _, s := range matrix {
		s.Floats, s.Histograms = slices.Clone(s.Floats), nil
		copied = append(copied, s)
	}
	return copied, nil
}

// Querier implements storage.Queryable.
func (f *Film) Querier(mint, maxt int64) (storage.Querier, error) {
	return &querier{f, mint, maxt}, nil
}

type querier struct {
	film       *Film
	mint, maxt int64
}

// Select implements storage.Querier.
func (q *querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	found := &set{at: -1}
	for _, s := range q.film.named(matchers) {
		if !matches(s.labels, matchers) {
			continue
		}
		var samples []chunks.Sample
		for _, p := range s.points {
			if p.at >= q.mint && p.at <= q.maxt {
				samples = append(samples, p)
			}
		}
		if len(samples) > 0 {
			found.series = append(found.series, storage.NewListSeries(s.labels, samples))
		}
	}
	slices.SortFunc(found.series, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return found
}

// named are the series that may match: those of one name, if it is known.
func (f *Film) named(matchers []*labels.Matcher) []*series {
	for _, m := range matchers {
		if m.Name == labels.MetricName && m.Type == labels.MatchEqual {
			return f.byName[m.Value]
		}
	}
	return slices.Collect(maps.Values(f.series))
}

func matches(all labels.Labels, matchers []*labels.Matcher) bool {
	return !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(all.Get(m.Name)) })
}

// LabelValues implements storage.Querier; evaluating asks for none.
func (q *querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

// LabelNames implements storage.Querier; evaluating asks for none.
func (q *querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

// Close implements storage.Querier.
func (q *querier) Close() error { return nil }

type set struct {
	series []storage.Series
	at     int
}

// Next implements storage.SeriesSet, and so do those that follow.
func (s *set) Next() bool                        { s.at++; return s.at < len(s.series) }
func (s *set) At() storage.Series                { return s.series[s.at] }
func (s *set) Err() error                        { return nil }
func (s *set) Warnings() annotations.Annotations { return nil }

// T implements chunks.Sample, and so do those that follow.
func (p point) T() int64                      { return p.at }
func (p point) ST() int64                     { return 0 }
func (p point) F() float64                    { return p.value }
func (p point) H() *histogram.Histogram       { return nil }
func (p point) FH() *histogram.FloatHistogram { return nil }
func (p point) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (p point) Copy() chunks.Sample           { return p }
