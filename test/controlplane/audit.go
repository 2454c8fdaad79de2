// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// auditPolicy writes one line for a request, when it is over. A watch is over when it is closed.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
`

// AuditKey is what requests are counted by.
type AuditKey struct {
	User        string
	Verb        string
	Resource    string
	Subresource string
	Code        int
}

type auditEvent struct {
	Stage string `json:"stage"`
	Verb  string `json:"verb"`
	User  struct {
		Username string `json:"username"`
	} `json:"user"`
	Object struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	Response struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// AuditCounts counts the requests in an audit log. Requests without an object, such as discovery, have an empty
// resource. The API server writes a moment after it answered; a last line that is not complete yet is left out.
func AuditCounts(path string) (map[AuditKey]int, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	defer file.Close()
	counts, err := countAudit(file)
	if err != nil {
		return nil, fmt.Errorf("reading audit log %s: %w", path, err)
	}
	return counts, nil
}

func countAudit(source io.Reader) (map[AuditKey]int, error) {
	counts := map[AuditKey]int{}
	reader := bufio.NewReaderSize(source, 1<<16)
	for number := 1; ; number++ {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return counts, nil
		}
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var event auditEvent
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("parsing line %d: %w", number, err)
		}
		// A request that panicked is counted too: it was sent.
		if event.Stage == "ResponseComplete" || event.Stage == "Panic" {
			counts[event.key()]++
		}
	}
}

func (e auditEvent) key() AuditKey {
	return AuditKey{
		User: e.User.Username, Verb: e.Verb,
		Resource: e.Object.Resource, Subresource: e.Object.Subresource, Code: e.Response.Code,
	}
}
