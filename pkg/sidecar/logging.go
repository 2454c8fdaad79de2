// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"

	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // makes --logging-format=json known
)

// unreachable are options of the logging library behind a gate that no sidecar ever had.
var unreachable = regexp.MustCompile(` ?Enable the LoggingAlphaOptions .*$`)

// vmoduleName is the flag whose values have a form of their own.
const vmoduleName = "vmodule"

// formats are those of the logs.
var formats = []string{"text", "json"}

func (p *process) addLogging(fs *flag.FlagSet) {
	logsapi.AddGoFlags(p.logging, fs)
	fs.VisitAll(func(f *flag.Flag) {
		f.Usage = strings.ReplaceAll(f.Usage, " (gated by LoggingBetaOptions)", "") // a gate that is on, and that nobody can set
		if text := unreachable.ReplaceAllString(f.Usage, ""); text != f.Usage {
			f.Usage = "accepted for old manifests, and cannot be enabled"
			p.unreachable = append(p.unreachable, f.Name)
		}
	})
}

// checkLogging says with the names of flags what the library says with those of a configuration file.
func (p *process) checkLogging() error {
	for _, name := range p.unreachable {
		if f := p.flags.Lookup(name); f.Value.String() != f.DefValue {
			return unreachableError(name, f.Value.String())
		}
	}
	c := p.logging
	switch {
	case !slices.Contains(formats, c.Format):
		return fmt.Errorf("--logging-format=%s: use text or json", c.Format)
	case c.FlushFrequency.Duration.Duration <= 0:
		return fmt.Errorf("--log-flush-frequency=%v: use a duration such as 5s", c.FlushFrequency.Duration.Duration)
	case len(c.VModule) > 0 && c.Format != formats[0]:
		return fmt.Errorf("--vmodule=%s: it is for --logging-format=text only; leave one of the two out", p.flags.Lookup(vmoduleName).Value)
	}
	return nil
}

func unreachableError(name, value string) error {
	return fmt.Errorf("--%s=%s: it cannot be enabled, as the sidecars have no feature gate LoggingAlphaOptions; leave the flag out", name, value)
}
