// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// Request is one request to the API server, in the words of its audit log.
type Request struct {
	Arrived  time.Time
	Finished time.Time
	// Agent is the user agent, which tells programs apart.
	Agent string
	// Verb is get, list, watch, create, update, patch, delete or deletecollection; for what is no resource, such as
	// discovery, it is the HTTP method in lower case and Path says what was asked.
	Verb        string
	Group       string
	Resource    string
	Subresource string
	Namespace   string
	// Name is also known for what is being created; if the server is to choose it, it is the beginning of it.
	Name string
	Path string
	// Code is the answer that the client got: zero while there is none, and when it never got one.
	Code int
	// Answer is what the server said, zero if it was not asked or did not answer.
	Answer int
	// Effect is the number of the effect, zero for what is none.
	Effect int
	// Faults are what the proxy did to it.
	Faults []string
}

// Key is namespace and name.
func (r Request) Key() string {
	if r.Namespace == "" {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

// IsWrite says whether the request would change something that matters to the life of an object. Leases and events are
// written at their own pace, and reviews change nothing.
func (r Request) IsWrite() bool {
	switch {
	case !slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb):
		return false
	case r.Resource == "", r.Resource == "events", r.Subresource == "token":
		return false
	case r.Group == "coordination.k8s.io", r.Group == "authorization.k8s.io", r.Group == "authentication.k8s.io":
		return false
	}
	return true
}

func (r Request) kind() string {
	if r.Subresource == "" {
		return r.Resource
	}
	return r.Resource + "/" + r.Subresource
}

const (
	// AnyWrite is a verb that stands for all that change something.
	AnyWrite = "write"
	// NoSubresource selects requests for the object itself.
	NoSubresource = "-"
)

// Match selects requests to the API server; what is empty fits all.
type Match struct {
	// Verb is one of those of Request, or AnyWrite.
	Verb        string
	Resource    string
	Subresource string
	Namespace   string
	// Name and Agent are parts of the name and the user agent.
	Name  string
	Agent string
	// Only narrows it further. It is called by several requests at once.
	Only func(Request) bool
}

func (m Match) matches(r Request) bool {
	isVerb := fits(m.Verb, r.Verb) || m.Verb == AnyWrite && r.IsWrite()
	isSubresource := fits(m.Subresource, r.Subresource) || m.Subresource == NoSubresource && r.Subresource == ""
	return isVerb && isSubresource && fits(m.Resource, r.Resource) && fits(m.Namespace, r.Namespace) &&
		strings.Contains(r.Name, m.Name) && strings.Contains(r.Agent, m.Agent) &&
		(m.Only == nil || m.Only(r))
}

func fits(want, got string) bool { return want == "" || want == got }

// readRequest reads what a request asks for, as the API server itself would.
func readRequest(r *http.Request, body []byte) Request {
	q := Request{
		Arrived: time.Now(), Agent: r.UserAgent(), Verb: strings.ToLower(r.Method), Path: r.URL.Path,
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		q.Group, parts = parts[1], parts[3:]
	default:
		return q
	}
	q.readPath(parts)
	q.readVerb(r.Method, r.URL.Query())
	if q.Verb == "create" && q.Name == "" {
		q.Name = nameIn(body, r.Header.Get("Content-Type"))
	}
	return q
}

func (r *Request) readPath(parts []string) {
	if parts[0] == "namespaces" && len(parts) > 1 {
		r.Namespace = parts[1]
		// These are parts of a namespace itself; anything else is a resource within it.
		if len(parts) > 2 && !slices.Contains([]string{"status", "finalize"}, parts[2]) {
			parts = parts[2:]
		}
	}
	r.Resource = parts[0]
	if len(parts) > 1 {
		r.Name = parts[1]
	}
	if len(parts) > 2 {
		r.Subresource = parts[2]
	}
}

func (r *Request) readVerb(method string, query url.Values) {
	switch method {
	case http.MethodPost:
		r.Verb = "create"
	case http.MethodPut:
		r.Verb = "update"
	case http.MethodGet, http.MethodHead:
		r.Verb = "get"
	}
	if r.Name != "" && !isWatch(query) {
		return
	}
	switch {
	case r.Verb == "get" && isWatch(query):
		r.Verb = "watch"
	case r.Verb == "get":
		r.Verb = "list"
	case r.Verb == "delete":
		r.Verb = "deletecollection"
	}
	if name, isOne := strings.CutPrefix(query.Get("fieldSelector"), "metadata.name="); isOne && r.Name == "" {
		r.Name = name
	}
}

// isWatch reads a boolean as the API server does: what is there means yes, unless it says no.
func isWatch(query url.Values) bool {
	values, ok := query["watch"]
	return ok && !slices.Contains([]string{"false", "0"}, strings.ToLower(values[0]))
}

// nameIn finds the name of an object that is being created, as far as its encoding is known.
func nameIn(body []byte, contentType string) string {
	var object metav1.Object
	switch media, _, _ := mime.ParseMediaType(contentType); media {
	case runtime.ContentTypeProtobuf:
		decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if err != nil {
			return ""
		}
		if object, err = meta.Accessor(decoded); err != nil {
			return ""
		}
	default:
		var partial metav1.PartialObjectMetadata
		if json.Unmarshal(body, &partial) != nil {
			return ""
		}
		object = &partial
	}
	if name := object.GetName(); name != "" {
		return name
	}
	return object.GetGenerateName()
}
