// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"strings"
	"testing"

	"k8s.io/utils/clock"
)

// TestTheKeyInAnEndpointIsNotTold: some collectors take their key in the path or the query of the URL. What is told of a collector that is
// not there has neither.
func TestTheKeyInAnEndpointIsNotTold(t *testing.T) {
	for _, endpoint := range []string{"http://127.0.0.1:1/v1/traces?api-key=canary", "http://127.0.0.1:1/canary/v1/traces", "http://canary@127.0.0.1:1/"} {
		set(t, map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "50"})
		s, err := readSettings(Options{Program: "p", Version: "v"})
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		sender, err := newSender(s, Options{Program: "p", Version: "v", Clock: clock.RealClock{}, Complain: func(err error) {
			if err != nil {
				told = append(told, err.Error())
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		sender.send(t.Context(), []Record{{Name: "x"}})
		sender.close()
		if len(told) != 1 || strings.Contains(told[0], "canary") {
			t.Errorf("%s: told %q", endpoint, told)
		}
	}
}
