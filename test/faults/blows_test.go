// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/csi-tandem/csi-tandem/examples/driver/script"
	"github.com/csi-tandem/csi-tandem/test/proxy"
	"github.com/csi-tandem/csi-tandem/test/stage"
)

var (
	resources = []string{"", "", "persistentvolumeclaims", "persistentvolumes", "volumesnapshots", "volumesnapshotcontents", "configmaps", "secrets"}
	watched   = []string{"", "persistentvolumeclaims", "persistentvolumes", "volumesnapshots", "volumesnapshotcontents"}
	makers    = []string{"CreateVolume", "DeleteVolume", "CreateSnapshot", "DeleteSnapshot"}
	methods   = append([]string{"", "GetSnapshot", "ListSnapshots"}, makers...)
)

// apiSorts are what an API server does, and what lies between. It never lies: nothing is said to be there that is not, or not
// to be there that is.
var apiSorts = []sort{
	{name: "late", share: 8, wheres: resources},
	{name: "late answers", share: 8, wheres: resources},
	{name: "429", share: 6, wheres: resources},
	{name: "500", share: 10, wheres: resources},
	{name: "503", share: 6, wheres: resources},
	{name: "504 when it was done", share: 10, wheres: resources},
	{name: "conflict", share: 10, wheres: resources},
	{name: "lost requests", share: 8, wheres: resources},
	{name: "lost answers", share: 12, wheres: resources},
	{name: "hanging", share: 5, wheres: resources},
	{name: "hanging answers", share: 5, wheres: resources},
	{name: "dropped watches", share: 8, wheres: watched},
	{name: "expired watches", share: 5, wheres: watched},
	{name: "old caches", share: 12, wheres: watched},
	{name: "caches standing still", share: 5, wheres: watched},
	{name: "cut connections", share: 3},
	{name: "API server down", share: 2},
}

var apiBlows = map[string]func(a *proxy.API, b blow) *proxy.Fault{
	"late":                 func(a *proxy.API, b blow) *proxy.Fault { return a.Delay(b.some(), b.late, b.times) },
	"late answers":         func(a *proxy.API, b blow) *proxy.Fault { return a.DelayAfter(b.some(), b.late, b.times) },
	"429":                  func(a *proxy.API, b blow) *proxy.Fault { return a.Fail(b.some(), proxy.TooMany, b.times) },
	"500":                  func(a *proxy.API, b blow) *proxy.Fault { return a.Fail(b.some(), proxy.Broken, b.times) },
	"503":                  func(a *proxy.API, b blow) *proxy.Fault { return a.Fail(b.some(), proxy.Unavailable, b.times) },
	"504 when it was done": func(a *proxy.API, b blow) *proxy.Fault { return a.FailAfter(b.writes(), proxy.TimedOut, b.times) },
	"conflict":             func(a *proxy.API, b blow) *proxy.Fault { return a.Fail(b.verb("patch"), proxy.Conflict, b.times) },
	"lost requests":        func(a *proxy.API, b blow) *proxy.Fault { return a.Fail(b.some(), proxy.Lost, b.times) },
	"lost answers":         func(a *proxy.API, b blow) *proxy.Fault { return a.FailAfter(b.writes(), proxy.Lost, b.times) },
	"hanging":              func(a *proxy.API, b blow) *proxy.Fault { return a.Hang(b.some(), b.times) },
	"hanging answers":      func(a *proxy.API, b blow) *proxy.Fault { return a.HangAfter(b.some(), b.times) },
	"expired watches": func(a *proxy.API, b blow) *proxy.Fault {
		a.CutWatches(b.where)
		return a.Fail(b.verb("watch"), proxy.Expired, 1)
	},
	"old caches":            func(a *proxy.API, b blow) *proxy.Fault { return a.LagWatches(b.verb("watch"), b.late) },
	"caches standing still": func(a *proxy.API, b blow) *proxy.Fault { return a.HoldWatches(b.verb("watch")) },
}

// some are writes or everything, watches included.
func (b blow) some() proxy.Match {
	if b.pick%3 == 0 {
		return proxy.Match{Resource: b.where}
	}
	return b.writes()
}

func (b blow) writes() proxy.Match { return b.verb(proxy.AnyWrite) }

func (b blow) verb(verb string) proxy.Match { return proxy.Match{Verb: verb, Resource: b.where} }

// driverSorts are what a driver does that is true to the CSI specification, or nearly: answers that lack something are followed
// by good ones. A code that says that nothing was made is never given to a call that made something.
var driverSorts = []sort{
	{name: "driver fails", share: 14, wheres: methods, common: true},
	{name: "driver does it and fails", share: 16, wheres: makers, common: true},
	{name: "driver hangs", share: 8, wheres: methods, common: true},
	{name: "driver does it and hangs", share: 10, wheres: makers, common: true},
	{name: "driver lags", share: 10, wheres: methods, common: true},
	{name: "driver is narrow", share: 5, wheres: makers, common: true},
	{name: "snapshots are long unready", share: 6, common: true},
	{name: string(script.NoVolume), share: 3, wheres: []string{"CreateVolume"}, common: true},
	{name: string(script.NoVolumeID), share: 3, wheres: []string{"CreateVolume"}, common: true},
	{name: string(script.NoContentSource), share: 6, wheres: []string{"CreateVolume"}, common: true},
	{name: string(script.TooSmall), share: 6, wheres: []string{"CreateVolume"}, common: true},
	{name: string(script.NoSnapshot), share: 3, wheres: []string{"CreateSnapshot"}, common: true},
	{name: string(script.NoSnapshotID), share: 3, wheres: []string{"CreateSnapshot"}, common: true},
	{name: "driver forgets", share: 4, common: true},
	{name: "driver killed", share: 3, common: true},
	{name: "lost calls", share: 5, wheres: makers},
	{name: "lost answers of the driver", share: 8, wheres: makers},
	{name: "driver gone", share: 3},
	{name: "driver cut off", share: 4},
}

// openCodes leave open what was done, or say nothing about earlier calls.
var openCodes = []codes.Code{
	codes.Unavailable, codes.DeadlineExceeded, codes.Aborted, codes.Internal, codes.Unknown, codes.Canceled, codes.ResourceExhausted,
}

// rule is the line of the driver's script for a blow, if it is one of those.
func (b blow) rule() (script.Rule, bool) {
	r := script.Rule{Method: b.where, Times: b.times, Duration: b.lasts}
	switch b.what {
	case "driver fails":
		r.Action, r.Code = script.Fail, openCodes[b.pick%uint64(len(openCodes))]
	case "driver does it and fails":
		// Who has done it does not say that there was no room.
		r.Action, r.Code = script.CommitFail, openCodes[b.pick%uint64(len(openCodes)-1)]
	case "driver hangs":
		r.Action, r.Duration = script.Hang, 0
	case "driver does it and hangs":
		r.Action, r.Duration = script.CommitHang, 0
	case "driver lags":
		r.Action, r.Duration = script.Lag, b.late
	case "driver is narrow":
		r.Action, r.Parallel, r.Times = script.Limit, b.times, 0
	case "snapshots are long unready":
		r = script.Rule{Action: script.Unready, Calls: 2 + b.times}
	default:
		if !slices.Contains([]string{
			string(script.NoVolume), string(script.NoVolumeID), string(script.NoContentSource), string(script.TooSmall),
			string(script.NoSnapshot), string(script.NoSnapshotID),
		}, b.what) {
			return r, false
		}
		r.Action, r.Distortion = script.Distort, script.Distortion(b.what)
	}
	return r, true
}

// endSorts end a sidecar.
var endSorts = []sort{{name: "killed", share: 7}, {name: "asked to end", share: 3}}

// strike begins a blow. What it returns ends it, and says how often it hit.
func (p *play) strike(ctx context.Context, b blow) (end func() int, err error) {
	if add, ok := apiBlows[b.what]; ok {
		return untilReleased(add(p.api(b), b)), nil
	}
	if rule, ok := b.rule(); ok {
		return p.strikeByScript(ctx, rule)
	}
	if do, ok := otherBlows[b.what]; ok {
		return do(ctx, p, b)
	}
	return nil, fmt.Errorf("no blow is called %q", b.what)
}

// otherBlows are neither faults of the API's proxy nor lines of the driver's script.
var otherBlows = map[string]func(ctx context.Context, p *play, b blow) (end func() int, err error){
	"dropped watches": func(_ context.Context, p *play, b blow) (func() int, error) {
		n := p.api(b).CutWatches(b.where)
		return func() int { return n }, nil
	},
	"cut connections": func(_ context.Context, p *play, b blow) (func() int, error) {
		p.api(b).CutConnections()
		return once, nil
	},
	"API server down": func(_ context.Context, p *play, b blow) (func() int, error) {
		return p.goneAndBack(p.api(b).Down, p.api(b).Up)
	},
	"driver gone": func(_ context.Context, p *play, b blow) (func() int, error) {
		return p.goneAndBack(p.door(b).Down, p.door(b).Up)
	},
	"driver cut off": func(_ context.Context, p *play, b blow) (func() int, error) {
		p.door(b).CutConnections()
		return once, nil
	},
	"lost calls": func(_ context.Context, p *play, b blow) (func() int, error) {
		return untilReleased(p.door(b).Fail(proxy.CallMatch{Method: b.where}, proxy.Failure{}, b.times)), nil
	},
	"lost answers of the driver": func(_ context.Context, p *play, b blow) (func() int, error) {
		return untilReleased(p.door(b).FailAfter(proxy.CallMatch{Method: b.where}, proxy.Failure{}, b.times)), nil
	},
	"driver forgets": func(ctx context.Context, p *play, b blow) (func() int, error) { return once, p.forget(ctx, b) },
	"driver killed": func(_ context.Context, p *play, _ blow) (func() int, error) {
		p.cast.Driver.Kill()
		return func() int { p.note(p.cast.Driver.Start()); return 1 }, nil
	},
	"killed":       func(_ context.Context, p *play, b blow) (func() int, error) { return p.end(b), nil },
	"asked to end": func(_ context.Context, p *play, b blow) (func() int, error) { return p.end(b), nil },
}

func once() int { return 1 }

func untilReleased(fault *proxy.Fault) func() int {
	return func() int { fault.Release(); return fault.Hits() }
}

func (p *play) api(b blow) *proxy.API { return p.apis[stage.Program(b.whom)] }

// door is the proxy between a program and the driver.
func (p *play) door(b blow) *proxy.Driver { return p.drivers[stage.Program(b.whom)] }

func (p *play) goneAndBack(down, up func() error) (func() int, error) {
	return func() int { p.note(up()); return 1 }, down()
}

// strikeByScript is lost when the driver is killed meanwhile, and so is how often it hit.
func (p *play) strikeByScript(ctx context.Context, rule script.Rule) (func() int, error) {
	id, err := p.script.Add(ctx, rule)
	if err != nil {
		return func() int { return 0 }, nil //nolint:nilerr // The driver is away, which is a blow of its own.
	}
	return func() int {
		hits := 0
		if rules, err := p.script.Rules(ctx); err == nil {
			for _, r := range rules {
				if r.ID == id && r.Action == rule.Action {
					hits = r.Hits
				}
			}
		}
		_ = p.script.Release(ctx, id)
		return hits
	}, nil
}

// forget makes the driver lose a volume or a snapshot, as storage does that somebody cleans up by hand. It is one that nothing is
// made from: whether a call for a volume made it, before its source was lost, no driver says.
func (p *play) forget(ctx context.Context, b blow) error {
	inventory, err := p.script.Inventory(ctx)
	if err != nil {
		return nil //nolint:nilerr // The driver is away, and forgets nothing.
	}
	ids := map[string]string{}
	for _, v := range inventory.Volumes {
		ids[p.ledger.lifeIn(v.Name)] = v.ID
	}
	for _, s := range inventory.Snapshots {
		ids[p.ledger.lifeIn(s.Name)] = s.ID
	}
	for _, l := range p.text.lives {
		delete(ids, l.from)
	}
	delete(ids, "")
	if len(ids) == 0 {
		return nil
	}
	lives := slices.Sorted(maps.Keys(ids))
	id := ids[lives[b.pick%uint64(len(lives))]]
	p.mu.Lock()
	p.forgotten[id] = true
	p.mu.Unlock()
	_ = p.script.Forget(ctx, id) // It may be gone by now.
	return nil
}

// tooYoung is how a program ends that was started a moment ago and does not listen to signals yet. One at work ends with 0, which
// the crashes at every step insist on.
const tooYoung = "signal: terminated"

// end ends a sidecar now, and starts it again at the end of the blow.
func (p *play) end(b blow) func() int {
	program := stage.Program(b.whom)
	victim, turn := p.sidecars[program], p.turns[program]
	turn.Lock()
	defer turn.Unlock()
	hits := 0
	if victim.IsRunning() {
		hits = 1
		if b.what == "killed" {
			victim.Kill()
		} else if state := victim.Terminate(); state.ExitCode() != 0 && state.String() != tooYoung {
			p.complain("A4: the %s was asked to end, and ended with %v", victim.Name, state)
		}
	}
	return func() int {
		p.note(victim.Start())
		return hits
	}
}
