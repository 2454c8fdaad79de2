// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"flag"
	"fmt"
	"time"

	"k8s.io/klog/v2"
)

// Flag declares a flag that nothing here reads. The type of its default is its type.
type Flag struct {
	Name    string
	Default any
	Usage   string
}

// Missing is a feature that this build does not have. Its flags are known, so that a manifest with their
// default values works, and so that whoever asks for the feature is told instead of left waiting.
type Missing struct {
	Feature string
	// Switches ask for the feature by any other value than their default.
	Switches []Flag
	// Details only steer it, and mean nothing without a switch.
	Details []Flag
}

func (m Missing) add(fs *flag.FlagSet) {
	for _, f := range m.Switches {
		f.add(fs, " (not in this build yet)")
	}
	for _, f := range m.Details {
		f.add(fs, " (not in this build yet)")
	}
}

func (f Flag) add(fs *flag.FlagSet, remark string) {
	text := f.Usage + remark
	switch value := f.Default.(type) {
	case bool:
		fs.Bool(f.Name, value, text)
	case int:
		fs.Int(f.Name, value, text)
	case uint:
		fs.Uint(f.Name, value, text)
	case float64:
		fs.Float64(f.Name, value, text)
	case time.Duration:
		fs.Duration(f.Name, value, text)
	default:
		fs.String(f.Name, fmt.Sprint(value), text)
	}
}

// check refuses a feature that somebody has switched on.
func (m Missing) check(fs *flag.FlagSet) error {
	for _, s := range m.Switches {
		if f := fs.Lookup(s.Name); f != nil && f.Value.String() != f.DefValue {
			return fmt.Errorf("--%s=%s: this build does not have %s yet; remove the flag, or keep the sidecar that you use for it", f.Name, f.Value, m.Feature)
		}
	}
	return nil
}

// warnMissing tells of flags that steer what is not there. Their defaults stand in manifests of old, and tell nothing.
func warnMissing(logger klog.Logger, fs *flag.FlagSet, features []Missing) {
	for _, m := range features {
		for _, d := range m.Details {
			if f := fs.Lookup(d.Name); f != nil && f.Value.String() != f.DefValue {
				logger.Info("Warning: this flag does nothing here; remove it, or keep the sidecar that you use for it", "flag", "--"+d.Name, "value", f.Value.String(), "why", "this build does not have "+m.Feature+" yet")
			}
		}
	}
}

// retired accepts any value for a flag that means nothing any more.
type retired struct {
	text   string
	isBool bool
}

// String implements flag.Value.
func (r *retired) String() string { return r.text }

// Set implements flag.Value.
func (r *retired) Set(text string) error {
	r.text = text
	return nil
}

// IsBoolFlag lets switches stand without a value, as they did in their time.
func (r *retired) IsBoolFlag() bool { return r.isBool }

func addRetired(fs *flag.FlagSet, flags []Flag) {
	for _, f := range flags {
		_, isBool := f.Default.(bool)
		fs.Var(&retired{text: fmt.Sprint(f.Default), isBool: isBool}, f.Name, f.Usage)
	}
}

func warnRetired(logger klog.Logger, fs *flag.FlagSet, flags []Flag) {
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for _, f := range flags {
		if given[f.Name] {
			logger.Info("Warning: this flag does nothing any more; remove it", "flag", "--"+f.Name, "why", f.Usage)
		}
	}
}

// klogFlags are the flags of logging as it was before 2022. Logs go to stderr, and nowhere else.
func klogFlags() []Flag {
	const why = "retired: logs go to stderr"
	return []Flag{
		{"logtostderr", true, why}, {"alsologtostderr", false, why}, {"stderrthreshold", "2", why},
		{"log_dir", "", why}, {"log_file", "", why}, {"log_file_max_size", "1800", why},
		{"log_backtrace_at", ":0", why}, {"add_dir_header", false, why}, {"skip_headers", false, why},
		{"skip_log_headers", false, why}, {"one_output", false, why},
	}
}
