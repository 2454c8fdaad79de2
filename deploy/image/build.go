// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"time"
)

// image is one image: a program, and the name by which it is called in there.
type image struct {
	name, program string
	title, about  string
}

// images are three of two programs: the snapshotter that is called snapshot-controller binds for the whole cluster.
func images() []image {
	return []image{
		{"provisioner", "./cmd/provisioner", "csi-tandem provisioner", "Makes and deletes the volumes of a CSI driver"},
		{"snapshotter", "./cmd/snapshotter", "csi-tandem snapshotter", "Takes, deletes and binds the snapshots of a CSI driver"},
		{"snapshot-controller", "./cmd/snapshotter", "csi-tandem snapshot-controller", "Binds the snapshots of all CSI drivers of a cluster"},
	}
}

// binary is a program that was built, and what it says of itself.
type binary struct {
	file, arch string
	info       *buildinfo.BuildInfo
}

// tag is what a registry takes as a tag.
var tag = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)

func (p plan) check() error {
	if !tag.MatchString(p.version) {
		return fmt.Errorf("-version=%s: it becomes the tag, so use up to 128 letters, digits, dots, dashes and underscores", p.version)
	}
	for _, arch := range p.arches {
		if arch == "" {
			return fmt.Errorf("-arch: an architecture has no name; write amd64,arm64")
		}
	}
	return nil
}

// ldflags are those of the Makefile.
func ldflags(version string) string { return "-s -w -X main.version=" + version }

// build compiles a program as a static file. What the user's environment says about building is left out as far as it would
// change the result; an empty GOFLAGS would let the user's file of settings speak.
func (p plan) build(ctx context.Context, program, arch, file string) (binary, error) {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=auto", "-ldflags", ldflags(p.version), "-o", file, program)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.root, os.Stderr, os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOWORK=off", "GOFLAGS=-trimpath", "GOAMD64=v1", "GOARM64=v8.0")
	// A go that is killed leaves what it works in.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return binary{}, fmt.Errorf("building %s for %s: %w", program, arch, err)
	}
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return binary{}, fmt.Errorf("reading what %s says of itself: %w", path.Base(file), err)
	}
	return binary{file, arch, info}, nil
}

// setting is one of the facts that the linker noted, such as the commit.
func (b binary) setting(key string) string {
	for _, s := range b.info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// created is the time of the commit: the time of the build would make every image another one. Without a commit it is the epoch.
func (b binary) created() time.Time {
	at, err := time.Parse(time.RFC3339, b.setting("vcs.time"))
	if err != nil {
		return time.Unix(0, 0).UTC()
	}
	return at.UTC()
}

// revision is the commit, marked when the tree had changes besides.
func (b binary) revision() string {
	revision := b.setting("vcs.revision")
	if revision != "" && b.setting("vcs.modified") == "true" {
		revision += "-dirty"
	}
	return revision
}

// source is where the module lives.
func (b binary) source() string {
	if !strings.Contains(b.info.Main.Path, ".") {
		return ""
	}
	return "https://" + b.info.Main.Path
}
