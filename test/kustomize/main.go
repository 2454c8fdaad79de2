// SPDX-License-Identifier: Apache-2.0

// Command kustomize builds folders as kubectl apply -k does, and writes what is built into a folder, one file for each.
//
//	kustomize -out DIR FOLDER...
//
// It owns the library, which has a module of its own so that nothing else depends on it. Tests run it: there is no other program
// here that builds what deploy/ has.
// It must not know what it builds. It stands outside every walk.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func main() {
	out := flag.String("out", "", "folder for what is built; a file has the name of its folder, with dots for slashes")
	flag.Parse()
	if err := run(*out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out string, folders []string) error {
	if out == "" || len(folders) == 0 {
		return errors.New("usage: kustomize -out DIR FOLDER...")
	}
	for _, folder := range folders {
		built, err := build(folder)
		if err != nil {
			return fmt.Errorf("building %s: %w", folder, err)
		}
		name := strings.ReplaceAll(strings.Trim(filepath.ToSlash(folder), "/"), "/", ".") + ".yaml"
		if err := os.WriteFile(filepath.Join(out, name), built, 0o600); err != nil {
			return fmt.Errorf("writing what was built of %s: %w", folder, err)
		}
	}
	return nil
}

// build has the restrictions of kubectl: files from outside a folder are refused, folders are not.
func build(folder string) ([]byte, error) {
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, err
	}
	return objects.AsYaml()
}
