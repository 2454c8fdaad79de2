// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/csi-tandem/csi-tandem/test/controlplane"
	"github.com/csi-tandem/csi-tandem/test/stage"
)

// recordVariable makes a whole run write what was seen to where the rules of the house compare it with deploy/.
const recordVariable = "CSI_TANDEM_RECORD"

// verb is something that a program was seen to do: "group resource verb", where the group without a name is core, and
// a subresource follows its resource after a slash.
type verb string

// Reasons for rights that no test here makes a program use with the accounts of all rights.
const (
	forAttached = "with drivers that attach volumes, which the example driver does not"
	forGrants   = "with the gate CrossNamespaceVolumeDataSource"
)

// unused are the granted verbs that may go unused in a run, each with the reason for which it is granted. A verb that only
// some runs use may stand here. The tests of single features use them, with accounts of their own.
var unused = map[stage.Program]map[verb]string{
	stage.Provisioner: {
		"apps replicasets get":                            "the owner of capacity objects, with --capacity-ownerref-level=2",
		"apps daemonsets get":                             "the owner of capacity objects, with --capacity-ownerref-level=2",
		"gateway.networking.k8s.io referencegrants watch": forGrants,
		"core namespaces get":                             "with --create-parameter-namespace-labels or -annotations",
		"storage.k8s.io volumeattachments watch":          forAttached,
		"core persistentvolumeclaims get":                 "before the data of a volume is deleted that a claim still names",
	},
	stage.Snapshotter: {},
}

// isExplained tells whether there is a reason for a right that was not used.
func isExplained(program stage.Program, v verb) bool {
	// The API server here streams the lists that caches begin with, as a watch; older ones are asked for a list.
	_, explained := unused[program][v]
	return explained || strings.HasSuffix(string(v), " list")
}

// isWholeRun is false when somebody chose tests, which then do not use every right.
func isWholeRun() bool {
	for _, name := range []string{"test.run", "test.skip"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" {
			return false
		}
	}
	return !flag.Lookup("test.short").Value.(flag.Getter).Get().(bool)
}

// verbFaults compares what the sidecars asked of the API server with what deploy/ grants. After a whole run the record
// for the rules of the house can be written.
func verbFaults(s *stage.Stage, isWhole bool) []string {
	log := s.Cluster.AuditLog()
	if log == "" {
		return []string{"there is no audit log"}
	}
	var faults []string
	for _, program := range []stage.Program{stage.Provisioner, stage.Snapshotter} {
		seen, err := readAudit(log, fmt.Sprintf("system:serviceaccount:%s:csi-%s", stage.Namespace, program))
		if err != nil {
			return append(faults, err.Error())
		}
		for line := range seen.refused {
			faults = append(faults, fmt.Sprintf("the %s was refused: %s", program, line))
		}
		if !isWhole {
			continue
		}
		granted, err := readGrants(filepath.Join(s.Root, "deploy", string(program), "rbac.yaml"))
		if err != nil {
			return append(faults, err.Error())
		}
		faults = append(faults, idle(program, granted, seen.used)...)
		if os.Getenv(recordVariable) != "" {
			if err := writeRecord(s.Root, program, seen.lines); err != nil {
				faults = append(faults, err.Error())
			}
		}
	}
	slices.Sort(faults)
	return faults
}

// idle finds rights that nothing used and nothing explains, and explanations of rights that are not granted.
func idle(program stage.Program, granted []verb, used map[verb]bool) []string {
	var faults []string
	for _, v := range granted {
		if !used[v] && !isExplained(program, v) {
			faults = append(faults, fmt.Sprintf("the %s never used the right %q, and no reason is given for it", program, v))
		}
	}
	for v := range unused[program] {
		if !slices.Contains(granted, v) {
			faults = append(faults, fmt.Sprintf("a reason is given for the right %q of the %s, which has no such right", v, program))
		}
	}
	return faults
}

// seen is what an audit log says of one user.
type seen struct {
	used    map[verb]bool
	refused map[string]bool
	// lines are for the record: "namespace group resource verb".
	lines map[string]bool
}

func readAudit(path, user string) (seen, error) {
	s := seen{used: map[verb]bool{}, refused: map[string]bool{}, lines: map[string]bool{}}
	_, err := controlplane.ReadAudit(path, 0, func(a controlplane.AuditLine) {
		if a.User.Username == user && a.Object.Resource != "" {
			s.take(a)
		}
	})
	return s, err
}

func (s seen) take(a controlplane.AuditLine) {
	group, resource, namespace := a.Object.Group, a.Object.Resource, a.Object.Namespace
	if group == "" {
		group = "core"
	}
	if a.Object.Subresource != "" {
		resource += "/" + a.Object.Subresource
	}
	if namespace == "" {
		namespace = "*"
	}
	if a.Response.Code == 403 {
		s.refused[fmt.Sprintf("%s %s %s %s %s", namespace, group, resource, a.Verb, a.Object.Name)] = true
		return
	}
	s.used[verb(fmt.Sprintf("%s %s %s", group, resource, a.Verb))] = true
	// Names of namespaces that tests make up say nothing.
	if namespace != "*" && namespace != stage.Namespace && namespace != "kube-system" {
		namespace = "default"
	}
	s.lines[fmt.Sprintf("%s %s %s %s", namespace, group, resource, a.Verb)] = true
}

// readGrants lists what the roles of a manifest grant.
func readGrants(path string) ([]verb, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening the rights: %w", err)
	}
	defer file.Close()
	documents := utilyaml.NewYAMLReader(bufio.NewReader(file))
	granted := map[verb]bool{}
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading the rights: %w", err)
		}
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal(document, &role); err != nil {
			return nil, fmt.Errorf("reading the rights: %w", err)
		}
		for _, rule := range role.Rules {
			grant(granted, rule)
		}
	}
	var all []verb
	for v := range granted {
		all = append(all, v)
	}
	return all, nil
}

func grant(granted map[verb]bool, rule rbacv1.PolicyRule) {
	for _, group := range rule.APIGroups {
		if group == "" {
			group = "core"
		}
		for _, resource := range rule.Resources {
			for _, v := range rule.Verbs {
				granted[verb(fmt.Sprintf("%s %s %s", group, resource, v))] = true
			}
		}
	}
}

// writeRecord writes what was seen where the rules of the house look for it.
func writeRecord(root string, program stage.Program, lines map[string]bool) error {
	dir := filepath.Join(root, "test", "arch", "testdata")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var all []string
	for line := range lines {
		all = append(all, line)
	}
	slices.Sort(all)
	content := "# What the " + string(program) + " was seen to do in the end-to-end tests: namespace, group, resource, verb.\n# Written by " +
		recordVariable + "=1 make e2e.\n" + strings.Join(all, "\n") + "\n"
	return os.WriteFile(filepath.Join(dir, "verbs-"+string(program)+".txt"), []byte(content), 0o644)
}

func parseSeed(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) }
