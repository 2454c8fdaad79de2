// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/klog/v2"
)

// Exit codes. They are those of the sidecars that manifests and alerts were written for.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
	exitFatal   = 255
)

// terminationLog is where the kubelet looks for a container's last words.
const terminationLog = "/dev/termination-log"

// ending is an error that knows its exit code.
type ending struct {
	error
	code int
}

func (e *ending) Unwrap() error { return e.error }

func usage(format string, args ...any) error {
	return &ending{fmt.Errorf(format, args...), exitUsage}
}

func fatal(format string, args ...any) error {
	return &ending{fmt.Errorf(format, args...), exitFatal}
}

// lastWords is an error that operators should also see in the status of the pod.
type lastWords struct{ error }

func (e *lastWords) Unwrap() error { return e.error }

// exit says why the process ends, in one line, and with which code.
func (p *process) exit(err error) int {
	defer klog.Flush()
	if err == nil {
		return exitOK
	}
	// Several errors are a list of lines; in a log, and in the status of a pod, they are one.
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	_, _ = fmt.Fprintf(p.stderr, "%s: %s\n", p.name, text)
	if words := (*lastWords)(nil); errors.As(err, &words) {
		// Outside of a pod there is no such file, and none is made.
		if file, openErr := os.OpenFile(p.terminationLog, os.O_WRONLY|os.O_TRUNC, 0); openErr == nil {
			_, writeErr := fmt.Fprintln(file, text)
			if closeErr := file.Close(); writeErr != nil || closeErr != nil {
				klog.ErrorS(errors.Join(writeErr, closeErr), "Last words not written", "file", p.terminationLog)
			}
		}
	}
	if e := (*ending)(nil); errors.As(err, &e) {
		return e.code
	}
	return exitFailure
}
