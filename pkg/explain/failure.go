// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/csi-tandem/csi-tandem/pkg/fault"
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
	if isUnreached(last.Message) {
		return []hindrance{{
			why:    fmt.Sprintf("the provisioner could not reach the driver, %s ago: %s", age, last.Message),
			advice: []string{"see that the container of the driver runs, and that both have the volume in which its socket is; it is tried again by itself"},
		}}
	}
	if fault.IsFromDriver(last.Message) {
		return []hindrance{{
			why:    fmt.Sprintf("the driver has answered, %s ago: %s", age, last.Message),
			advice: []string{adviseAnswer(last.Message, l.blamed(last.Message))},
		}}
	}
	return []hindrance{{
		why:    fmt.Sprintf("the last try failed, %s ago, on what is not seen here or is over by now: %s", age, last.Message),
		advice: []string{fmt.Sprintf("do what the message advises, if that is not done yet; otherwise wait for the next try, which is %s away at most; if the same is told again, docs/operations.md says what helps", span(l.RetryMax))},
	}}
}

// isUnreached tells what gRPC says of a socket at which nobody listens, from what a driver says itself with the same code.
func isUnreached(message string) bool {
	return fault.CodeIn(message) == "Unavailable" && strings.Contains(strings.ToLower(message), "error while dialing")
}

// blamed is what the answer may be about. A driver that refuses parameters does not say whose they are.
func (l *claimLook) blamed(message string) string {
	class := "StorageClass " + l.class.Name
	if name := ptr.Deref(l.claim.Spec.VolumeAttributesClassName, ""); name != "" && fault.CodeIn(message) == "InvalidArgument" {
		class += " and those of VolumeAttributesClass " + name
	}
	return class
}

// lastTold is when the provisioner of the driver last told anything of the claim.
func (l *claimLook) lastTold() time.Time {
	var last time.Time
	for _, e := range l.told {
		if from := fromOf(e); from == l.Driver.Name || strings.HasPrefix(from, l.Driver.Name+"_") {
			last = timeOf(e)
		}
	}
	return last
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
