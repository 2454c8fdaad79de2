// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Rule is a scripted answer of the API server. Empty fields match all.
type Rule struct {
	Verb string
	// Resource is the plural, with "/status" for the subresource.
	Resource string
	Name     string
	// Err is the answer; nil lets the request pass.
	Err error
	// Done does the work before the answer is Err: the answer is lost.
	Done bool
	// Times is for how many requests the rule stands; 0 until it is removed.
	Times int
	// Meanwhile runs before the request is served: somebody else is faster. It may use the API.
	Meanwhile func()

	denies bool
}

func (r *Rule) matches(q Request) bool {
	resource := q.Resource
	if q.Subresource != "" {
		resource += "/" + q.Subresource
	}
	return (r.Verb == "" || r.Verb == q.Verb) && (r.Resource == "" || r.Resource == resource) && (r.Name == "" || r.Name == q.Key.Name)
}

// Script adds a rule; earlier ones come first. The result removes it.
func (a *API) Script(rule Rule) (remove func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	kept := &rule
	a.rules = append(a.rules, kept)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.rules = slices.DeleteFunc(a.rules, func(r *Rule) bool { return r == kept })
	}
}

// Fail answers the next requests with an error, without doing anything.
func (a *API) Fail(verb, resource string, err error, times int) {
	a.Script(Rule{Verb: verb, Resource: resource, Err: err, Times: times})
}

// Lose does the next requests and then answers with an error.
func (a *API) Lose(verb, resource string, err error, times int) {
	a.Script(Rule{Verb: verb, Resource: resource, Err: err, Times: times, Done: true})
}

// Conflict answers the next patches of a resource with 409.
func (a *API) Conflict(resource string, times int) {
	a.Fail("patch", resource, apierrors.NewConflict(schema.GroupResource{Resource: resource}, "", errors.New(lockText)), times)
}

// Deny forbids a verb until release is called; access reviews say so as well.
func (a *API) Deny(verb, resource string) (release func()) {
	return a.Script(Rule{
		Verb: verb, Resource: resource, denies: true,
		Err: apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no RBAC rule allows "+verb)),
	})
}

// take finds the rule for a request and uses it up.
func (a *API) take(q Request) *Rule {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, rule := range a.rules {
		if !rule.matches(q) {
			continue
		}
		if rule.Times > 0 {
			if rule.Times--; rule.Times == 0 {
				a.rules = slices.Delete(a.rules, i, i+1)
			}
		}
		return rule
	}
	return nil
}

func (a *API) isDenied(q Request) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.rules, func(r *Rule) bool { return r.denies && r.matches(q) })
}
