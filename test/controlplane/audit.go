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

// AuditLine is one request that is over, as the API server wrote it down. Requests without an object, such as discovery,
// have an empty resource.
type AuditLine struct {
	Verb string `json:"verb"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	UserAgent string `json:"userAgent"`
	Object    struct {
		Namespace   string `json:"namespace"`
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Response struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// AuditCounts counts the requests in an audit log.
func AuditCounts(path string) (map[AuditKey]int, error) {
	counts := map[AuditKey]int{}
	_, err := ReadAudit(path, 0, func(line AuditLine) { counts[line.key()]++ })
	if err != nil {
		return nil, err
	}
	return counts, nil
}

// ReadAudit passes on every request in an audit log from an offset on, and returns the offset from which to go on later.
// The API server writes a moment after it answered; a last line that is not complete yet is left for the next time.
func ReadAudit(path string, from int64, each func(AuditLine)) (int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return from, fmt.Errorf("opening the audit log: %w", err)
	}
	defer file.Close()
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		return from, fmt.Errorf("seeking in audit log %s: %w", path, err)
	}
	size, err := readAudit(file, each)
	if err != nil {
		return from, fmt.Errorf("reading audit log %s from byte %d: %w", path, from, err)
	}
	return from + size, nil
}

func readAudit(source io.Reader, each func(AuditLine)) (size int64, err error) {
	reader := bufio.NewReaderSize(source, 1<<16)
	for number := 1; ; number++ {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return size, nil
		}
		if err != nil {
			return size, err
		}
		size += int64(len(line))
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		event := struct {
			Stage string `json:"stage"`
			AuditLine
		}{}
		if err := json.Unmarshal(line, &event); err != nil {
			return size, fmt.Errorf("parsing line %d: %w", number, err)
		}
		// A request that panicked is counted too: it was sent.
		if event.Stage == "ResponseComplete" || event.Stage == "Panic" {
			each(event.AuditLine)
		}
	}
}

func (l AuditLine) key() AuditKey {
	return AuditKey{
		User: l.User.Username, Verb: l.Verb,
		Resource: l.Object.Resource, Subresource: l.Object.Subresource, Code: l.Response.Code,
	}
}
