// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"

	"github.com/csi-tandem/csi-tandem/pkg/params"
	"github.com/csi-tandem/csi-tandem/pkg/topology"
	"github.com/csi-tandem/csi-tandem/pkg/wellknown"
)

// basics are the parts of a request that can be wrong before its source is looked at.
type basics struct {
	name         string
	fsType       string
	capabilities []*csi.VolumeCapability
	source       *Source
	content      *csi.VolumeContentSource
}

func basicsOf(in ClaimInput) (basics, error) {
	var b basics
	switch {
	case in.NamePrefix == "":
		return b, errors.New("volume name prefix cannot be of length 0")
	case in.Claim.UID == "":
		return b, errors.New("corrupted PVC object, it is missing UID")
	}
	b.name = cmp.Or(in.name, in.volumeName(in.Claim.Namespace, in.Claim.Name, in.Claim.UID))
	var err error
	if b.fsType, err = params.FSType(in.Class.Parameters, in.DefaultFSType); err != nil {
		return b, blameClass(in, err)
	}
	if b.capabilities, err = capabilitiesOf(in, b.fsType); err != nil {
		return b, advise(err, newClaim+"has accessModes of ReadWriteOnce, ReadWriteOncePod, ReadOnlyMany or ReadWriteMany")
	}
	return b, nil
}

// buildRequest makes the attempt that is sent for a claim whose basics and source are in order.
func buildRequest(in ClaimInput, basics basics) (*Attempt, error) {
	places, err := requirement(in)
	if err != nil {
		return nil, fmt.Errorf("error generating accessibility requirements: %w", err)
	}
	secrets, err := resolveSecrets(in, basics.name)
	if err != nil {
		return nil, blameSecrets(in, err)
	}
	parameters, err := params.DriverParameters(in.Class.Parameters, params.VolumeKeys())
	if err != nil {
		return nil, blameClass(in, fmt.Errorf("failed to strip CSI Parameters of prefixed keys: %w", err))
	}
	if in.ExtraCreateMetadata {
		parameters[wellknown.ParamPVCName] = in.Claim.Name
		parameters[wellknown.ParamPVCNamespace] = in.Claim.Namespace
		parameters[wellknown.ParamPVName] = basics.name
	}
	attempt := &Attempt{
		Ref: claimRef(in.Claim),
		Request: &csi.CreateVolumeRequest{
			Name:                      basics.name,
			CapacityRange:             &csi.CapacityRange{RequiredBytes: wantedSize(in)},
			VolumeCapabilities:        basics.capabilities,
			Parameters:                parameters,
			VolumeContentSource:       basics.content,
			AccessibilityRequirements: places.Requirement,
		},
		Secret:   secrets[params.Provisioner],
		Topology: in.hasTopology(),
		Source:   basics.source,
		Class:    in.Class.UID,
		Warnings: places.Warnings,
		InTree:   in.isReplaced(in.written.Provisioner), Migration: in.Migration,
	}
	if attempt.Topology || in.isLocal() {
		attempt.Node = selectedNode(in.Claim)
	}
	if attempt.Topology {
		attempt.Away = away(in, attempt.Node)
	}
	attempt.Short = short(in, attempt.Request.GetCapacityRange().GetRequiredBytes())
	attempt.Volume = template(in, basics, secrets)
	return attempt, nil
}

func requirement(in ClaimInput) (topology.Answer, error) {
	if !in.hasTopology() {
		return topology.Answer{}, nil
	}
	segments, warnings := near(in)
	answer, err := in.Topology.Requirement(topology.Question{
		Driver: in.Driver, Claim: in.Claim.Name, Node: selectedNode(in.Claim), Class: in.Class.Name,
		Allowed: in.Class.AllowedTopologies, Options: in.Places, Near: segments,
	})
	answer.Warnings = append(answer.Warnings, warnings...)
	return answer, err
}

type secretRefs map[params.Kind]*corev1.SecretReference

// volumeSecrets are the kinds in the order in which a mistake is told.
var volumeSecrets = []params.Kind{
	params.Provisioner, params.ControllerPublish, params.NodeStage, params.NodePublish,
	params.ControllerExpand, params.NodeExpand, params.ControllerModify,
}

func resolveSecrets(in ClaimInput, volume string) (secretRefs, error) {
	tokens := params.VolumeTokens(volume, params.Claim{
		Namespace: in.Claim.Namespace, Name: in.Claim.Name, Annotations: in.Claim.Annotations,
	})
	refs := secretRefs{}
	for _, kind := range volumeSecrets {
		ref, err := params.ResolveSecret(kind, in.Class.Parameters, tokens)
		if err != nil {
			return nil, err
		}
		refs[kind] = ref
	}
	return refs, nil
}

// addAttributes puts the parameters of the VolumeAttributesClass into a new attempt.
func addAttributes(in ClaimInput, attempt *Attempt) error {
	class := in.Attributes.Class
	switch {
	case in.Attributes.Err != nil:
		return blameAttributes(in, in.Attributes.Err)
	case class.DriverName != in.Driver:
		return blameAttributes(in, fmt.Errorf("VAC %s referenced in PVC is for driver %s which does not match driver name %s", class.Name, class.DriverName, in.Driver))
	}
	attempt.Request.MutableParameters = class.Parameters
	attempt.Volume.Spec.VolumeAttributesClassName = &class.Name
	return nil
}

func claimRef(claim *corev1.PersistentVolumeClaim) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		Kind: wellknown.KindPersistentVolumeClaim, APIVersion: "v1",
		Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
	}
}
