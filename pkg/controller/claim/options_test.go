// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"flag"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/csi-tandem/csi-tandem/pkg/controller/claim"
)

// The flags that users of such sidecars have in their manifests, with their defaults.
func TestFlags(t *testing.T) {
	flags := map[string]string{}
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	options := claim.NewOptions()
	options.AddFlags(fs)
	fs.VisitAll(func(f *flag.Flag) { flags[f.Name] = f.DefValue })
	if d := cmp.Diff(map[string]string{
		"attempt-record": "true", "volume-name-prefix": "pvc", "volume-name-uuid-length": "-1", "default-fstype": "", "extra-create-metadata": "false",
		"strict-topology": "false", "immediate-topology": "true", "controller-publish-readonly": "false",
		"prevent-volume-mode-conversion": "true", "restore-size": "refuse", "restore-topology": "ignore", "volume-name-template": "",
		"create-parameter-labels": "", "create-parameter-annotations": "",
		"create-parameter-namespace-labels": "", "create-parameter-namespace-annotations": "",
	}, flags); d != "" {
		t.Error(d)
	}
	if !options.Topology || !options.AttributesClass {
		t.Error("features that are on by default")
	}
	for _, c := range []struct {
		args []string
		ok   bool
	}{
		{nil, true},
		{[]string{"--volume-name-uuid-length=32"}, true},
		{[]string{"--volume-name-uuid-length=33"}, false},
		{[]string{"--volume-name-uuid-length=-2"}, false},
		{[]string{"--volume-name-prefix="}, false},
		{[]string{"--volume-name-template={namespace}-{name}-{uid}"}, true},
		{[]string{"--volume-name-template={name}"}, false},
		{[]string{"--volume-name-template={uid}", "--volume-name-prefix=x"}, false},
		{[]string{"--volume-name-template={uid}", "--volume-name-uuid-length=8"}, false},
		{[]string{"--restore-size=grow", "--restore-topology=prefer-source"}, true},
		{[]string{"--restore-size=shrink"}, false},
		{[]string{"--restore-topology=far"}, false},
		{[]string{"--create-parameter-labels=app.example.com/team, tier,", "--create-parameter-namespace-annotations=owner"}, true},
		{[]string{"--create-parameter-labels=not a key"}, false},
		{[]string{"--create-parameter-annotations=a,b,a"}, false},
	} {
		options := claim.NewOptions()
		fs := flag.NewFlagSet("", flag.ContinueOnError)
		options.AddFlags(fs)
		if err := fs.Parse(c.args); err != nil {
			t.Fatal(err)
		}
		if err := options.Validate(); (err == nil) != c.ok {
			t.Errorf("W7 %v: %v", c.args, err)
		}
	}
}
