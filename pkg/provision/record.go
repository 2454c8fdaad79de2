// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/encoding/protojson"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Written is an attempt as it is written down to outlive its process. Parts are texts that many attempts
// share, by a name that follows from what they say.
type Written struct {
	Body  string
	Parts map[string]string
}

// recordVersion is the form of Body. A later one may mean something that a request built from the fields
// known here would leave out, so it is not read.
const recordVersion = 1

// maxPriors bounds how many parked attempts an attempt is read with.
const maxPriors = 1000

type recorded struct {
	Version  int                      `json:"version,omitempty"`
	Ref      *corev1.ObjectReference  `json:"ref"`
	Request  json.RawMessage          `json:"request"`
	Places   *recordedPlaces          `json:"places,omitempty"`
	Secret   *corev1.SecretReference  `json:"secret,omitempty"`
	Volume   *corev1.PersistentVolume `json:"volume"`
	Class    types.UID                `json:"class,omitempty"`
	Node     string                   `json:"node,omitempty"`
	Topology bool                     `json:"topology,omitempty"`
	InTree   bool                     `json:"inTree,omitempty"`
	Source   *Source                  `json:"source,omitempty"`
	Away     string                   `json:"away,omitempty"`
	Short    string                   `json:"short,omitempty"`
	Parked   bool                     `json:"parked,omitempty"`
	Undoing  *Undoing                 `json:"undoing,omitempty"`
	Prior    *recorded                `json:"prior,omitempty"`
}

// BuildRecord is what is written down of an attempt before its call: all that a repeat of the very same
// call and its PersistentVolume need, and no value of a secret. What only counts repeats begins anew in
// another process, and what the driver has answered it answers again.
func BuildRecord(a *Attempt) (Written, error) {
	w := Written{Parts: map[string]string{}}
	r, err := recordOf(a, w.Parts)
	if err != nil {
		return w, err
	}
	r.Version = recordVersion
	body, err := json.Marshal(r)
	if err != nil {
		return w, fmt.Errorf("encoding the attempt for %s: %w", a.Name(), err)
	}
	w.Body = string(body)
	return w, nil
}

func recordOf(a *Attempt, parts map[string]string) (*recorded, error) {
	bare := a.WithSecrets(nil)
	bare.AccessibilityRequirements = nil
	request, err := protojson.Marshal(bare)
	if err != nil {
		return nil, fmt.Errorf("encoding the request for %s: %w", a.Name(), err)
	}
	// Its blanks are meant to differ from build to build; what is recorded is compared.
	var compact bytes.Buffer
	if err := json.Compact(&compact, request); err != nil {
		return nil, fmt.Errorf("encoding the request for %s: %w", a.Name(), err)
	}
	places, err := recordPlaces(a.Request.GetAccessibilityRequirements(), parts)
	if err != nil {
		return nil, err
	}
	r := &recorded{
		Ref: a.Ref, Request: compact.Bytes(), Places: places, Secret: a.Secret, Volume: a.Volume, Class: a.Class, Node: a.Node, Topology: a.Topology,
		InTree: a.InTree, Source: a.Source, Away: a.Away, Short: a.Short, Parked: a.Parked, Undoing: a.Undoing,
	}
	if a.Prior != nil {
		r.Prior, err = recordOf(a.Prior, parts)
	}
	return r, err
}

// ParseRecord reads what BuildRecord has written. The outcome of such an attempt is open: its call may
// have been made. The error means that the call cannot be repeated as it was.
func ParseRecord(w Written, migration Translator) (*Attempt, error) {
	var r recorded
	if err := json.Unmarshal([]byte(w.Body), &r); err != nil {
		return nil, fmt.Errorf("reading a recorded attempt: %w", err)
	}
	if r.Version != recordVersion {
		return nil, fmt.Errorf("reading a recorded attempt: its form is %d, and known is %d", r.Version, recordVersion)
	}
	attempt, err := r.attempt(w.Parts, migration, 0)
	if err != nil {
		return nil, fmt.Errorf("reading a recorded attempt: %w", err)
	}
	return removalFirst(attempt.row()), nil
}

func (r *recorded) attempt(parts map[string]string, migration Translator, depth int) (*Attempt, error) {
	if depth > maxPriors {
		return nil, fmt.Errorf("more than %d attempts came before it", maxPriors)
	}
	request := &csi.CreateVolumeRequest{}
	if err := (protojson.UnmarshalOptions{}).Unmarshal(r.Request, request); err != nil {
		return nil, fmt.Errorf("its request: %w", err)
	}
	request.Secrets = nil
	a := &Attempt{
		Ref: r.Ref, Request: request, Secret: r.Secret, Volume: r.Volume, Class: r.Class, Node: r.Node, Topology: r.Topology, InTree: r.InTree,
		Source: r.Source, Away: r.Away, Short: r.Short, Open: true, Parked: r.Parked, Undoing: r.Undoing,
	}
	if a.InTree {
		a.Migration = migration
	}
	if err := checkRecorded(a); err != nil {
		return nil, err
	}
	if a.Undoing != nil {
		if a.Undoing.Handle == "" {
			return nil, errors.New("it does not say which volume is being removed")
		}
		a.Undoing.Open = true
	}
	var err error
	if request.AccessibilityRequirements, err = r.Places.requirement(parts); err != nil {
		return nil, fmt.Errorf("its places: %w", err)
	}
	if r.Prior != nil {
		if a.Prior, err = r.Prior.attempt(parts, migration, depth+1); err == nil && a.Prior.Ref.UID != a.Ref.UID {
			return nil, errors.New("an attempt before it is for another claim")
		}
	}
	return a, err
}

// checkRecorded refuses what no attempt looks like: everybody with the right can edit a record.
func checkRecorded(a *Attempt) error {
	switch {
	case !isWhole(a.Ref):
		return errors.New("it does not say for which claim it is")
	case a.Name() == "":
		return errors.New("its volume has no name")
	case a.Volume == nil || a.Volume.Spec.CSI == nil || a.Volume.Name != a.Name():
		return errors.New("it has no PersistentVolume of that name")
	case a.Volume.Spec.ClaimRef == nil || a.Volume.Spec.ClaimRef.UID != a.Ref.UID:
		return errors.New("its PersistentVolume is for another claim")
	case a.InTree && a.Migration == nil:
		return errors.New("nothing is known of the plugin that its volume was of")
	}
	if a.Volume.Spec.CSI.VolumeAttributes == nil {
		a.Volume.Spec.CSI.VolumeAttributes = map[string]string{}
	}
	return nil
}

func isWhole(ref *corev1.ObjectReference) bool {
	return ref != nil && ref.UID != "" && ref.Name != "" && ref.Namespace != ""
}

// AsResumed is a recorded attempt as another process goes on with it; the claim is nil when it is gone. A
// claim for which the scheduler has chosen again gets a new request for its node; what the old one may have
// made is looked for when nobody waits for a volume any more.
func (a *Attempt) AsResumed(claim *corev1.PersistentVolumeClaim) *Attempt {
	if claim == nil || a.Node == "" || selectedNode(claim) == a.Node {
		return a
	}
	next := *a
	next.Parked = true
	return &next
}
