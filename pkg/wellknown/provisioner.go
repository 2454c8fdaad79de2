// SPDX-License-Identifier: Apache-2.0

package wellknown

// Annotations of claims and volumes. The GA key of a pair wins, even when it is empty.
const (
	AnnStorageProvisioner     = "volume.kubernetes.io/storage-provisioner"
	AnnBetaStorageProvisioner = "volume.beta.kubernetes.io/storage-provisioner"
	AnnSelectedNode           = "volume.kubernetes.io/selected-node"
	AnnAlphaSelectedNode      = "volume.alpha.kubernetes.io/selected-node"
	AnnBetaStorageClass       = "volume.beta.kubernetes.io/storage-class"
	AnnMigratedTo             = "pv.kubernetes.io/migrated-to"
	AnnProvisionedBy          = "pv.kubernetes.io/provisioned-by"

	AnnDeletionSecretName      = "volume.kubernetes.io/provisioner-deletion-secret-name"
	AnnDeletionSecretNamespace = "volume.kubernetes.io/provisioner-deletion-secret-namespace"
	AnnModifySecretName        = "volume.kubernetes.io/controller-modify-secret-name"
	AnnModifySecretNamespace   = "volume.kubernetes.io/controller-modify-secret-namespace"
)

// Finalizers that the provisioner puts on volumes and on the sources of new volumes.
const (
	FinalizerVolume           = "external-provisioner.volume.kubernetes.io/finalizer"
	FinalizerCloneSource      = "provisioner.storage.kubernetes.io/cloning-protection"
	FinalizerSnapshotAsSource = "provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection"
)

// VolumeAttributeIdentity is the volume attribute that names the process which made the volume.
const VolumeAttributeIdentity = "storage.kubernetes.io/csiProvisionerIdentity"

// Reserved StorageClass parameters; see ReservedParameterPrefix.
const (
	ParamFSType = ReservedParameterPrefix + "fstype"

	ParamSecretName      = ReservedParameterPrefix + "secret-name"
	ParamSecretNamespace = ReservedParameterPrefix + "secret-namespace"

	ParamProvisionerSecretName            = ReservedParameterPrefix + "provisioner-secret-name"
	ParamProvisionerSecretNamespace       = ReservedParameterPrefix + "provisioner-secret-namespace"
	ParamControllerPublishSecretName      = ReservedParameterPrefix + "controller-publish-secret-name"
	ParamControllerPublishSecretNamespace = ReservedParameterPrefix + "controller-publish-secret-namespace"
	ParamNodeStageSecretName              = ReservedParameterPrefix + "node-stage-secret-name"
	ParamNodeStageSecretNamespace         = ReservedParameterPrefix + "node-stage-secret-namespace"
	ParamNodePublishSecretName            = ReservedParameterPrefix + "node-publish-secret-name"
	ParamNodePublishSecretNamespace       = ReservedParameterPrefix + "node-publish-secret-namespace"
	ParamControllerExpandSecretName       = ReservedParameterPrefix + "controller-expand-secret-name"
	ParamControllerExpandSecretNamespace  = ReservedParameterPrefix + "controller-expand-secret-namespace"
	ParamNodeExpandSecretName             = ReservedParameterPrefix + "node-expand-secret-name"
	ParamNodeExpandSecretNamespace        = ReservedParameterPrefix + "node-expand-secret-namespace"
	ParamControllerModifySecretName       = ReservedParameterPrefix + "controller-modify-secret-name"
	ParamControllerModifySecretNamespace  = ReservedParameterPrefix + "controller-modify-secret-namespace"
)

// Deprecated StorageClass parameters without prefix. They are understood and still reach the driver.
const (
	ParamOldFSType                           = "fstype"
	ParamOldProvisionerSecretName            = "csiProvisionerSecretName"
	ParamOldProvisionerSecretNamespace       = "csiProvisionerSecretNamespace"
	ParamOldControllerPublishSecretName      = "csiControllerPublishSecretName"
	ParamOldControllerPublishSecretNamespace = "csiControllerPublishSecretNamespace"
	ParamOldNodeStageSecretName              = "csiNodeStageSecretName"
	ParamOldNodeStageSecretNamespace         = "csiNodeStageSecretNamespace"
	ParamOldNodePublishSecretName            = "csiNodePublishSecretName"
	ParamOldNodePublishSecretNamespace       = "csiNodePublishSecretNamespace"
)

// Parameters added to CreateVolume by --extra-create-metadata.
const (
	ParamPVCName      = ReservedParameterPrefix + "pvc/name"
	ParamPVCNamespace = ReservedParameterPrefix + "pvc/namespace"
	ParamPVName       = ReservedParameterPrefix + "pv/name"
)

// Prefixes of the parameters of CreateVolume under which chosen labels and annotations are passed on, each
// followed by the key of the label or annotation.
const (
	ParamClaimLabel          = "csi-tandem.io/pvc-label/"
	ParamClaimAnnotation     = "csi-tandem.io/pvc-annotation/"
	ParamNamespaceLabel      = "csi-tandem.io/namespace-label/"
	ParamNamespaceAnnotation = "csi-tandem.io/namespace-annotation/"
)

// Labels of CSIStorageCapacity objects, and the beginning of their names.
const (
	LabelCapacityDriver    = "csi.storage.k8s.io/drivername"
	LabelCapacityManagedBy = "csi.storage.k8s.io/managed-by"
	CapacityNamePrefix     = "csisc-"
)

// Event reasons of the provisioner.
const (
	ReasonProvisioning          = "Provisioning"
	ReasonProvisioningSucceeded = "ProvisioningSucceeded"
	ReasonProvisioningFailed    = "ProvisioningFailed"
	ReasonVolumeFailedDelete    = "VolumeFailedDelete"
	ReasonTopologyIgnored       = "TopologyIgnored"
	ReasonSourceDiffers         = "SourceDiffers"
)
