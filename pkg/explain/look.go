// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/csi-tandem/csi-tandem/pkg/capability"
	"github.com/csi-tandem/csi-tandem/pkg/kube"
)

// look is one explanation in the making.
type look struct {
	Setting
	client *reader
	report *Report

	// lease is what the process that works for the driver leads with, program what it is called, and service what the lease
	// says of it.
	lease, program string
	service        service
	// ledUntil is when the last lease ended that nobody holds.
	ledUntil time.Time
	// isDeaf says that events may not be read.
	isDeaf bool
	// nowhere is the namespace of a secret that does not exist.
	nowhere string
}

func newLook(s Setting) *look {
	l := &look{Setting: s, client: &reader{under: s.Client}, report: &Report{}}
	l.Setting.Client = l.client
	return l
}

func (l *look) note(format string, args ...any) {
	l.report.Notes = append(l.report.Notes, fmt.Sprintf(format, args...))
}

// nameDriver takes the driver's name from the first place that has it, if nobody has said it.
func (l *look) nameDriver(found ...Fact) {
	facts := &l.report.Driver
	switch {
	case l.Driver.Asked:
		*facts = DriverFacts{Name: l.Driver.Name, Version: l.Driver.Version, Capabilities: l.Driver.Capabilities.String(), Source: "the driver said so itself"}
		return
	case l.Driver.Name != "":
		facts.Name, facts.Source = l.Driver.Name, "the name is from --driver-name"
	}
	for _, f := range found {
		if facts.Name == "" && f.Value != "" {
			facts.Name, facts.Source = f.Value, "the name is from "+f.Name
		}
	}
	l.Driver.Name = facts.Name
	l.Driver.Capabilities = capability.Of([]capability.Plugin{csi.PluginCapability_Service_CONTROLLER_SERVICE}, everyCall()...)
	if facts.Source == "" {
		facts.Source = "nothing says which driver this is about; --driver-name does"
	}
	l.note("The driver was not asked what it can do (%s): it is taken to be able to do all that is needed. One with SINGLE_NODE_MULTI_WRITER is sent another access mode than a request shows here.", l.Driver.Why)
}

// noteNamespace tells that all in a namespace is about to go, which no object in it says yet.
func (l *look) noteNamespace(ctx context.Context, name string) {
	l.client.apart(func() { // who may not read namespaces is told of the object alone
		if namespace, err := kube.Fetch[*corev1.Namespace](ctx, l.client, kube.Key{Name: name}); err == nil && namespace.DeletionTimestamp != nil {
			l.note("Namespace %s is being deleted, and what is in it goes with it.", name)
		}
	})
}

// everyCall are all capabilities to make calls. One that only gives an access mode another name is left out.
func everyCall() []capability.Controller {
	var all []capability.Controller
	for number := range csi.ControllerServiceCapability_RPC_Type_name {
		c := capability.Controller(number)
		if c != csi.ControllerServiceCapability_RPC_UNKNOWN && c != csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER {
			all = append(all, c)
		}
	}
	return all
}

// fill reads one object into a store. An object that could not be read is not there, and the client
// remembers why.
func fill[T kube.Object](ctx context.Context, l *look, store *kube.Store[T], key kube.Key) (T, error) {
	obj, err := kube.Fetch[T](ctx, l.client, key)
	if err != nil {
		var none T
		return none, err
	}
	store.Show(obj)
	return obj, nil
}

// list calls back with every object of a kind.
func list[T kube.Object](ctx context.Context, l *look, namespace string, options metav1.ListOptions, each func(T)) error {
	for obj, err := range kube.FetchAll[T](ctx, l.client, namespace, options) {
		if err != nil {
			return err
		}
		each(obj)
	}
	return nil
}

// fillAll reads all objects of a kind into a store.
func fillAll[T kube.Object](ctx context.Context, l *look, store *kube.Store[T], namespace string) error {
	return list(ctx, l, namespace, metav1.ListOptions{}, func(obj T) { store.Show(obj) })
}

// add puts what a machine came to into the report.
func (l *look) add(m Machine, steps []any, advice []string) {
	for i, step := range steps {
		words := Say(step)
		if i < len(steps)-1 {
			m.Before = append(m.Before, words.Does)
			continue
		}
		m.Step, m.Sentence, m.Event, m.Request = typeName(step), words.Does, words.Event, requestOf(step)
	}
	m.Advice = append(append(m.Advice, l.adviseNowhere()...), advice...)
	m.Doubts = append(m.Doubts, l.client.takeFailed()...)
	l.report.Machines = append(l.report.Machines, m)
}

// unasked tells why a machine was not asked.
func (l *look) unasked(m Machine, why string, advice ...string) {
	m.Sentence, m.Advice = why, advice
	m.Doubts = l.client.takeFailed()
	l.report.Machines = append(l.report.Machines, m)
}

func typeName(step any) string {
	name := fmt.Sprintf("%T", step)
	return name[strings.LastIndexByte(name, '.')+1:]
}

// anySteps forgets which machine the steps are from.
func anySteps[S any](steps []S) []any {
	all := make([]any, len(steps))
	for i, s := range steps {
		all[i] = s
	}
	return all
}
