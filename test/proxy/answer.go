// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Answer is what a client is told instead of the server's answer. The zero value tells nothing and breaks off: the
// answer is lost.
type Answer struct {
	// Code is an HTTP status of 400 or more.
	Code int
	// RetryAfter asks the client to stay away, in whole seconds.
	RetryAfter time.Duration
	// Reason and Message replace those that the code usually has.
	Reason  metav1.StatusReason
	Message string
}

// Answers that tests use a lot.
var (
	Lost         = Answer{}
	TooMany      = Answer{Code: http.StatusTooManyRequests, RetryAfter: time.Second}
	Broken       = Answer{Code: http.StatusInternalServerError}
	Unavailable  = Answer{Code: http.StatusServiceUnavailable}
	TimedOut     = Answer{Code: http.StatusGatewayTimeout}
	Conflict     = Answer{Code: http.StatusConflict, Reason: metav1.StatusReasonConflict}
	NotAllowed   = Answer{Code: http.StatusForbidden}
	NotFound     = Answer{Code: http.StatusNotFound}
	Unauthorized = Answer{Code: http.StatusUnauthorized}
	// Expired makes a watch begin anew with a list.
	Expired = Answer{Code: http.StatusGone, Reason: metav1.StatusReasonExpired, Message: "too old resource version"}
)

func (a Answer) isLost() bool { return a.Code == 0 }

// write answers as the API server does, with a Status in JSON, which clients of every encoding read.
func (a Answer) write(w http.ResponseWriter, method string, q Request) error {
	seconds := int(math.Ceil(a.RetryAfter.Seconds()))
	resource := schema.GroupResource{Group: q.Group, Resource: q.Resource}
	status := apierrors.NewGenericServerResponse(a.Code, method, resource, q.Name, a.Message, seconds, false).Status()
	status.APIVersion, status.Kind = "v1", "Status"
	if a.Reason != "" {
		status.Reason = a.Reason
	}
	if a.Message != "" {
		status.Message = a.Message
	}
	body, err := json.Marshal(status)
	if err != nil {
		return fmt.Errorf("encoding an answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	if seconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
	}
	w.WriteHeader(a.Code)
	_, err = w.Write(body)
	return err
}
