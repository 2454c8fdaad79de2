// SPDX-License-Identifier: Apache-2.0

// Command image builds both programs for each architecture and writes three container images of them as OCI
// layouts, each with an SBOM, without a daemon and without a registry.
//
// It owns what an image is made of: one static program, a user without rights, labels that say what it was built
// from. Everything in an image follows from the commit and the toolchain, so that two builds have one digest.
// It must not import the module of the sidecars: the library that writes images has dependencies that are not theirs.
// It stands outside all walks, behind `make image`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// plan is what one run is asked for.
type plan struct {
	// root is the folder of the module that holds the programs, and out where the layouts go.
	root, out string
	version   string
	arches    []string
	images    []image
	// twice builds everything a second time and compares.
	twice bool
}

func run(ctx context.Context, args []string, out io.Writer) error {
	p := plan{images: images()}
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.StringVar(&p.root, "root", ".", "folder of the module with the programs")
	flags.StringVar(&p.out, "out", "out/image", "folder for the layouts, one for each image")
	flags.StringVar(&p.version, "version", "unknown", "version to stamp, which is also the tag")
	arches := flags.String("arch", "amd64,arm64", "architectures")
	flags.BoolVar(&p.twice, "twice", false, "build all twice, and fail when the digests differ")
	if err := flags.Parse(args); err != nil {
		return err
	}
	p.arches = strings.Split(*arches, ",")
	if err := p.check(); err != nil {
		return err
	}
	digests, err := p.write(ctx, p.out)
	if err != nil {
		return err
	}
	if p.twice {
		if err := p.compare(ctx, digests); err != nil {
			return err
		}
	}
	for _, i := range p.images {
		fmt.Fprintf(out, "%s:%s %s\n", filepath.Join(p.out, i.name), p.version, digests[i.name])
	}
	return nil
}

// compare builds once more, elsewhere. The compiler takes what it has compiled before, and links anew.
func (p plan) compare(ctx context.Context, first map[string]string) error {
	dir, err := os.MkdirTemp("", "image-again-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	second, err := p.write(ctx, dir)
	if err != nil {
		return err
	}
	for _, i := range p.images {
		if first[i.name] != second[i.name] {
			return fmt.Errorf("image %s is not reproducible, or the tree was changed meanwhile: %s, and built again %s", i.name, first[i.name], second[i.name])
		}
	}
	return nil
}

// write makes a layout for each image below a folder, and tells the digest of each. A layout that is there already is replaced
// only when the new one is whole.
func (p plan) write(ctx context.Context, out string) (digests map[string]string, err error) {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(out, ".building-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	digests = map[string]string{}
	built := map[string]binary{}
	for _, i := range p.images {
		var binaries []binary
		for _, arch := range p.arches {
			key := i.program + "-" + arch
			if _, ok := built[key]; !ok {
				if built[key], err = p.build(ctx, i.program, arch, filepath.Join(dir, key)); err != nil {
					return nil, err
				}
			}
			binaries = append(binaries, built[key])
		}
		fresh := filepath.Join(dir, i.name)
		if digests[i.name], err = writeLayout(fresh, i, p.version, binaries); err != nil {
			return nil, fmt.Errorf("image %s: %w", i.name, err)
		}
		final := filepath.Join(out, i.name)
		if err := os.RemoveAll(final); err != nil {
			return nil, err
		}
		if err := os.Rename(fresh, final); err != nil {
			return nil, err
		}
	}
	return digests, nil
}
