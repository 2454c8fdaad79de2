// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"errors"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/topology"
)

// prepare goes through the checks of a claim that is to be provisioned, in the order in which users are
// told what is wrong, up to a request or to something that has to be read first.
func prepare(in ClaimInput) ClaimStep {
	in, source, err := opening(in)
	if err != nil {
		return Reject{Err: err, Waiting: isPending(err)}
	}
	if source != nil && !source.isKnown() {
		return LeaveToPopulator{}
	}
	if err := checkCapabilities(in, source); err != nil {
		return Reject{Err: err}
	}
	if in.Claim.Spec.Selector != nil {
		return Reject{Err: advise(errors.New("claim Selector is not supported"), newClaim+"has no spec.selector, or make a PersistentVolume by hand that it selects")}
	}
	basics, err := basicsOf(in)
	if err != nil {
		return Reject{Err: err}
	}
	if source == nil {
		return build(in, basics)
	}
	if in.Source == nil {
		return ReadSource{*source}
	}
	content, err := CheckSource(in, source)
	if err != nil {
		return Reject{Err: err, Waiting: isPending(err)}
	}
	if !in.Source.isProtected() {
		return ProtectSource{*source}
	}
	basics.source, basics.content = source, content
	return build(in, basics)
}

// opening is what comes before all that depends on the driver: the source as it is written down, and the
// class as the driver understands it.
func opening(in ClaimInput) (ClaimInput, *Source, error) {
	source, group := SourceOf(in.Claim)
	if err := checkNamespace(in, source, group); err != nil {
		return in, nil, err
	}
	in, err := translateClass(in)
	if err != nil {
		return in, nil, err
	}
	return in, source, checkReference(in.Claim, source, group)
}

func build(in ClaimInput, basics basics) ClaimStep {
	attempt, err := buildRequest(in, basics)
	if topology.IsReschedule(err) && selectedNode(in.Claim) != "" {
		return Reschedule{Err: err}
	}
	if err != nil {
		return Reject{Err: err, After: placeDelay(err)}
	}
	if in.Metadata.NeedsNamespace() && in.Namespace == nil {
		return ReadNamespace{in.Claim.Namespace}
	}
	if err := addMetadata(in, attempt.Request.Parameters); err != nil {
		return Reject{Err: err}
	}
	if name := in.attributesClass(); name != "" {
		if in.Attributes == nil {
			return ReadAttributes{name}
		}
		if err := addAttributes(in, attempt); err != nil {
			return Reject{Err: err}
		}
	}
	return Create{attempt}
}

// placeRetry is when a claim is looked at again that waits for a node to get its labels or its driver.
// Looking costs no request, and a registration that has just come to its end should not wait for the
// long delays of an old claim.
const placeRetry = 5 * time.Second

func placeDelay(err error) time.Duration {
	var missing *topology.Error
	if errors.As(err, &missing) {
		return placeRetry
	}
	return 0
}

// checkCapabilities refuses what the driver cannot do, before anything is touched.
func checkCapabilities(in ClaimInput, source *Source) error {
	if err := missingCapability(in, source); err != nil {
		return blameDriver(in.Config, err)
	}
	return nil
}

func missingCapability(in ClaimInput, source *Source) error {
	if err := checkController(in.Config); err != nil {
		return err
	}
	can := in.Capabilities
	switch {
	case source != nil && source.isSnapshot() && !can.Has(csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT):
		return errors.New("CSI driver does not support snapshot restore: controller CREATE_DELETE_SNAPSHOT capability is not reported")
	case source != nil && !source.isSnapshot() && !can.Has(csi.ControllerServiceCapability_RPC_CLONE_VOLUME):
		return errors.New("CSI driver does not support clone operations: controller CLONE_VOLUME capability is not reported")
	case in.attributesClass() != "" && !can.Has(csi.ControllerServiceCapability_RPC_MODIFY_VOLUME):
		return errors.New("CSI driver does not support VolumeAttributesClass: controller MODIFY_VOLUME capability is not reported")
	}
	return nil
}

func checkController(c Config) error {
	switch {
	case !c.Capabilities.HasController():
		return errors.New("CSI driver does not support dynamic provisioning: plugin CONTROLLER_SERVICE capability is not reported")
	case !c.Capabilities.Has(csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME):
		return errors.New("CSI driver does not support dynamic provisioning: controller CREATE_DELETE_VOLUME capability is not reported")
	}
	return nil
}

// attributesClass is the VolumeAttributesClass that the claim names, empty for none.
func (in ClaimInput) attributesClass() string {
	if name := in.Claim.Spec.VolumeAttributesClassName; in.AttributesClass && name != nil {
		return *name
	}
	return ""
}

func (in ClaimInput) isBlock() bool { return modeOf(in.Claim) == corev1.PersistentVolumeBlock }
