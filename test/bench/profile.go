// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
)

// profile begins to take processor profiles of the programs and of the API server. The function that is returned waits for
// them and takes heap profiles of the programs besides. Nothing is done unless profiles were asked for.
func (b *bench) profile(ctx context.Context, p phase) (wait func() error) {
	if b.o.profiles == "" || !p.isMeasured {
		return func() error { return nil }
	}
	if err := os.MkdirAll(b.o.profiles, 0o755); err != nil {
		return func() error { return fmt.Errorf("making the folder for profiles: %w", err) }
	}
	keep := func(program, kind string, content []byte, err error) error {
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%s-%s-%s-%s.pb.gz", b.o.label, fileName(p.name), program, kind)
		return os.WriteFile(filepath.Join(b.o.profiles, name), content, 0o644)
	}
	path, seconds := "/debug/pprof/profile", fmt.Sprint(b.o.profileSeconds)
	var group errgroup.Group
	for _, m := range b.crew {
		group.Go(func() error {
			content, err := m.fetch(ctx, path+"?seconds="+seconds)
			return keep(m.name, "cpu", content, err)
		})
	}
	group.Go(func() error {
		server := b.stage.Kube.CoreV1().RESTClient()
		content, err := server.Get().AbsPath(path).Param("seconds", seconds).DoRaw(ctx)
		return keep("kube-apiserver", "cpu", content, err)
	})
	return func() error {
		err := group.Wait()
		for _, m := range b.crew {
			content, fetchErr := m.fetch(ctx, "/debug/pprof/heap")
			err = errors.Join(err, keep(m.name, "heap", content, fetchErr))
		}
		return err
	}
}

// fileName leaves of a phase's name what is good in one of a file.
func fileName(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	return strings.Join(words, "-")
}
