// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
)

// result is the outcome of one or more runs.
type result struct {
	Ran     int `json:"ran"`
	Passed  int `json:"passed"`
	Skipped int `json:"skipped"`
	Failed  int `json:"failed"`
}

func (r *result) add(o result) {
	r.Ran += o.Ran
	r.Passed += o.Passed
	r.Skipped += o.Skipped
	r.Failed += o.Failed
}

func (r result) String() string {
	return fmt.Sprintf("%d specs ran, %d passed, %d failed, %d skipped", r.Ran, r.Passed, r.Failed, r.Skipped)
}

func (r result) write(file string) error {
	content, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o600)
}

func readResult(file string) (result, error) {
	var r result
	content, err := os.ReadFile(file)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(content, &r)
}

// suite takes the place of testing.T: failures are counted from the report.
type suite struct{}

func (suite) Fail() {}

// specs runs the tests. Claimed is what our driver says it can do; with nil,
// nothing is asked of the skips.
func specs(config sanity.TestConfig, name string, claimed claimSet) (result, error) {
	var report types.Report
	ginkgo.ReportAfterSuite("numbers", func(r types.Report) { report = r })
	sc := sanity.GinkgoTest(&config)
	gomega.RegisterFailHandler(ginkgo.Fail)
	config2, reporter := ginkgo.GinkgoConfiguration()
	reporter.Succinct, reporter.NoColor = true, !isTerminal(os.Stdout)
	passed := ginkgo.RunSpecs(suite{}, "csi-test: "+name, config2, reporter)
	sc.Finalize()
	fmt.Println()

	r, reasons := count(report)
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		verdict := ""
		if f := claimed.covers(reason); f != "" {
			verdict = fmt.Sprintf(" - but the driver claims %s", f)
			r.Failed += reasons[reason]
		}
		fmt.Printf("sanity: %s: skipped %d: %s%s\n", name, reasons[reason], reason, verdict)
	}
	fmt.Printf("sanity: %s: %s\n", name, r)
	if !passed && r.Failed == 0 {
		return r, fmt.Errorf("the suite failed outside of its specs: %v", report.SpecialSuiteFailureReasons)
	}
	return r, nil
}

func isTerminal(out *os.File) bool {
	info, err := out.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// count also collects why specs were skipped. One that is switched off in
// csi-test itself has no reason.
func count(report types.Report) (result, map[string]int) {
	var r result
	reasons := map[string]int{}
	for _, s := range report.SpecReports {
		switch {
		case s.LeafNodeType != types.NodeTypeIt:
			if s.State.Is(types.SpecStateFailureStates) {
				r.Failed++
			}
		case s.State.Is(types.SpecStatePassed):
			r.Ran++
			r.Passed++
		case s.State.Is(types.SpecStateSkipped):
			r.Skipped++
			reasons[cmp.Or(s.Failure.Message, "no reason given: "+s.FullText())]++
		case s.State.Is(types.SpecStatePending):
			r.Skipped++
			reasons["switched off in csi-test: "+s.LeafNodeText]++
		default:
			r.Ran++
			r.Failed++
		}
	}
	return r, reasons
}
