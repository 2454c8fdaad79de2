// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
	"github.com/csi-tandem/csi-tandem/pkg/provision"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// binderOfClaims is who writes events of the same reason about claims that it cannot give to any driver.
const binderOfClaims = "persistentvolume-controller"

// failure is what was told last of a claim that is to be tried again. What could be found out without asking the driver is
// decided anew in an explanation; what the driver says, only the event has.
func (l *claimLook) failure() []hindrance {
	var last *corev1.Event
	for _, e := range l.told {
		if e.Type == corev1.EventTypeWarning && e.Reason == wellknown.ReasonProvisioningFailed && fromOf(e) != binderOfClaims {
			last = e
		}
	}
	if last == nil {
		return nil
	}
	age := span(l.Clock.Since(timeOf(last)))
	if fault.IsUnreachedIn(last.Message) {
		return []hindrance{{
			why:    fmt.Sprintf("the provisioner could not reach the driver, %s ago: %s", age, last.Message),
			advice: []string{"see that the container of the driver runs, and that both have the volume in which its socket is; it is tried again by itself"},
		}}
	}
	if fault.IsFromDriver(last.Message) {
		said, _, _ := strings.Cut(last.Message, "; "+provision.Compare) // what helps comes below
		said, outdated, isOutdated := strings.Cut(said, "; "+provision.Outdated)
		advice := []string{adviseAnswer(last.Message, l.blamed(last.Message))}
		if isOutdated {
			advice = []string{provision.Outdated + outdated}
		}
		return []hindrance{{
			why:    fmt.Sprintf("the driver %s, %s ago: %s", answered(said), age, said),
			advice: append(advice, l.adviseAttributes(last.Message)...),
		}}
	}
	what, remedy, _ := strings.Cut(last.Message, "; ")
	return []hindrance{{
		why:    fmt.Sprintf("the provisioner could not go on when it last tried, %s ago: %s", age, what),
		advice: l.adviseToldBy(remedy),
	}}
}

// answered is what the driver did: nothing, where only the time was over.
func answered(message string) string {
	if fault.CodeIn(message) == "DeadlineExceeded" {
		return "had not answered in time"
	}
	return "has answered"
}

// adviseToldBy is the remedy that the provisioner has told, and when it sees that something was done. Many of the things that it waits for
// wake it, but not all.
func (l *claimLook) adviseToldBy(remedy string) []string {
	if strings.Contains(remedy, wellknown.AnnRetry) {
		return []string{remedy}
	}
	advice := fmt.Sprintf("when that is done: it is tried again by itself, after %s at the latest, or at once with kubectl annotate pvc -n %s %s --overwrite %s=$(date +%%s)",
		span(l.RetryMax), l.claim.Namespace, l.claim.Name, wellknown.AnnRetry)
	if remedy == "" {
		remedy = "docs/operations.md says what helps against that"
	}
	return []string{remedy, advice}
}

// toldOfPlaces tells that the provisioner has spoken of places, which only one does whose driver has them.
func (l *claimLook) toldOfPlaces() bool {
	told := slices.ContainsFunc(l.told, func(e *corev1.Event) bool {
		return l.isOurs(e) && e.Reason == wellknown.ReasonProvisioningFailed && topology.IsTold(e.Message)
	})
	if told {
		l.note("That places matter to the driver is known from what its provisioner has told of the claim: no CSINode says so.")
	}
	return told
}

// blamed is what the answer may be about. A driver that refuses parameters does not say whose they are.
func (l *claimLook) blamed(message string) string {
	class := "StorageClass " + provision.ClassName(l.claim) // which may be gone
	if name := l.refusedAttributes(message); name != "" {
		class += " and those of VolumeAttributesClass " + name
	}
	return class
}

// refusedAttributes is the class whose parameters the driver may have refused, empty where there is none.
func (l *claimLook) refusedAttributes(message string) string {
	if fault.CodeIn(message) != "InvalidArgument" {
		return ""
	}
	return ptr.Deref(l.claim.Spec.VolumeAttributesClassName, "")
}

// adviseAttributes is about a class that can neither be changed nor, while a claim names it, go.
func (l *claimLook) adviseAttributes(message string) []string {
	name := l.refusedAttributes(message)
	if name == "" {
		return nil
	}
	return []string{fmt.Sprintf("parameters of a VolumeAttributesClass cannot be changed: if those of %s are wrong, delete this claim and make one that names another", name)}
}

// lastTold is when the provisioner of the driver last told anything of the claim.
func (l *claimLook) lastTold() time.Time {
	var last time.Time
	for _, e := range l.told {
		if l.isOurs(e) {
			last = timeOf(e)
		}
	}
	return last
}

// isOurs tells an event of the driver's provisioner.
func (l *claimLook) isOurs(e *corev1.Event) bool {
	from := fromOf(e)
	return from == l.Driver.Name || strings.HasPrefix(from, l.Driver.Name+"_")
}

// answers are what helps against what a driver has said, by the code of its answer, for what the class says. The codes have these meanings in
// the CSI spec, in the errors of CreateVolume and CreateSnapshot.
var answers = map[string]string{
	"InvalidArgument":    "the same will be refused again: compare the words of the driver with the parameters of %s, and with what is asked for",
	"OutOfRange":         "the driver makes none of this size: ask for another size in a new object, or use another class than %s",
	"NotFound":           "something is not there at the driver: the source, or what parameters of %s name",
	"AlreadyExists":      "the driver has something else under the same name, whatever the parameters of %s were then: look at it there",
	"PermissionDenied":   "the storage does not let the driver do it: look at the secret that %s names, if any, and at what the driver itself was given",
	"Unauthenticated":    "the storage does not accept the credentials: look at the secret that %s names, if any, and at what the driver itself was given",
	"ResourceExhausted":  "there is no room, or not enough for one so large: make some, ask for less, or allow other places in %s; it is tried again by itself",
	"FailedPrecondition": "the words of the driver name what has to be put right first, at the source or in what %s asks for; it is tried again by itself",
	"Unimplemented":      "the driver cannot do this: use what it can, or a class of another driver than that of %s",
}

// adviseAnswer says what helps against an answer. Where its outcome is open, only the driver's log says more.
func adviseAnswer(message, class string) string {
	if advice, ok := answers[fault.CodeIn(message)]; ok {
		return fmt.Sprintf(advice, class)
	}
	return "the same request is repeated by itself until the driver gives a certain answer; if that lasts, look at the log of the driver, which runs beside the sidecar"
}
