// SPDX-License-Identifier: Apache-2.0

// Package explain owns the answer to "why does it wait?": the rooms are asked once what they would do next
// about one claim or one snapshot, and that is put into words, with what it would need to go on.
//
// It must not write anything, read any secret, nor decide anything: deciding is what the machines do, and
// explain hands them what it has read live. A client that refuses writes stands between it and the server.
//
// It stands beside every walk: it goes as far as the sidecar would before it waits, writes or calls, and
// turns the step that comes then into a sentence.
package explain

import (
	"time"

	"k8s.io/utils/clock"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// Setting is whom an explanation can ask.
type Setting struct {
	Client kube.Client
	Clock  clock.WithTicker
	Driver Driver
	// RetryStart and RetryMax are the delays of the sidecar.
	RetryStart, RetryMax time.Duration
}

// Driver is what is known of the driver.
type Driver struct {
	// Name is empty when nobody has said it; then it is taken from the objects.
	Name, Version string
	Capabilities  capability.Set
	// Asked says that the driver has told name and capabilities itself; Why is why it has not.
	Asked bool
	Why   string
}

// Report is an explanation.
type Report struct {
	Object   Object      `json:"object"`
	Driver   DriverFacts `json:"driver"`
	Machines []Machine   `json:"machines"`
	// Room is where the scheduler is told that there is some, for a claim that waits for it.
	Room []Room `json:"room,omitempty"`
	// Users are the pods that use a claim which is bound or waits for its first pod, and what they wait for.
	Users []User `json:"pods,omitempty"`
	// Holders are the finalizers of all objects of the explanation.
	Holders []Holder `json:"finalizers,omitempty"`
	Events  []Event  `json:"events,omitempty"`
	// Notes are what could not be seen, and what that means.
	Notes []string `json:"notes,omitempty"`
}

// Object is an object and its state.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	State     []Fact `json:"state,omitempty"`
}

// Fact is one thing to know about an object.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// DriverFacts say which driver the explanation is about, and how that is known.
type DriverFacts struct {
	Name         string `json:"name"`
	Version      string `json:"version,omitempty"`
	Capabilities string `json:"capabilities,omitempty"`
	// Source says where the name and the capabilities come from.
	Source string `json:"source"`
	// Sidecars are the processes that work for the driver, as far as leases tell.
	Sidecars []string `json:"sidecars,omitempty"`
}

// Machine is what one of the sidecar's machines would do about one object.
type Machine struct {
	// Program is who runs the machine.
	Program string `json:"program"`
	Object  Object `json:"object"`
	// Before are the steps that it would do first, and that need nobody else.
	Before []string `json:"before,omitempty"`
	// Step is the type of the step that it comes to, and Sentence what that is. Step is empty where the
	// machine could not be asked.
	Step     string `json:"step,omitempty"`
	Sentence string `json:"sentence"`
	// Event is the message that the step's event has, if it has one.
	Event   string   `json:"event,omitempty"`
	Request *Request `json:"request,omitempty"`
	// Hindrances are what keeps the step from coming to anything, and what no machine looks at.
	Hindrances []string `json:"inTheWay,omitempty"`
	// Advice is what somebody can change.
	Advice []string `json:"advice,omitempty"`
	// Doubts are reads that were refused, on which the answer may depend.
	Doubts []string `json:"doubts,omitempty"`
}

// Request is a call to the driver that would be sent. Its secret is named, never read.
type Request struct {
	Call         string            `json:"call"`
	Name         string            `json:"name,omitempty"`
	Handle       string            `json:"handle,omitempty"`
	Bytes        int64             `json:"bytes,omitempty"`
	Capabilities []string          `json:"capabilities,omitempty"`
	Source       string            `json:"source,omitempty"`
	Parameters   map[string]string `json:"parameters,omitempty"`
	Mutable      map[string]string `json:"mutableParameters,omitempty"`
	Requisite    []string          `json:"requisite,omitempty"`
	Preferred    []string          `json:"preferred,omitempty"`
	Secret       string            `json:"secret,omitempty"`
	// Warnings say in what the request is not what one would expect.
	Warnings []string `json:"warnings,omitempty"`
}

// Holder is a finalizer that keeps an object from going.
type Holder struct {
	Object    string `json:"object"`
	Finalizer string `json:"finalizer"`
	// Lifted says who takes it off, and when.
	Lifted string `json:"lifted"`
}

// Event is something that was told about an object.
type Event struct {
	Object  string    `json:"object"`
	Time    time.Time `json:"time"`
	Age     string    `json:"age"`
	Type    string    `json:"type"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	From    string    `json:"from,omitempty"`
	Count   int32     `json:"count,omitempty"`
}
