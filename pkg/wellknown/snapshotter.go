// SPDX-License-Identifier: Apache-2.0

package wellknown

// Finalizers of the snapshot objects and of the claims that snapshots are taken from.
const (
	FinalizerSnapshotSource  = "snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection"
	FinalizerSnapshotBound   = "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection"
	FinalizerSnapshotInGroup = "snapshot.storage.kubernetes.io/volumesnapshot-in-group-protection"
	FinalizerContent         = "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection"
	FinalizerSourceClaim     = "snapshot.storage.kubernetes.io/pvc-as-source-protection"
)

// Annotations and labels of snapshot contents and classes.
const (
	AnnBeingCreated                    = "snapshot.storage.kubernetes.io/volumesnapshot-being-created"
	AnnBeingDeleted                    = "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted"
	AnnSnapshotDeletionSecretName      = "snapshot.storage.kubernetes.io/deletion-secret-name"
	AnnSnapshotDeletionSecretNamespace = "snapshot.storage.kubernetes.io/deletion-secret-namespace"
	AnnIsDefaultSnapshotClass          = "snapshot.storage.kubernetes.io/is-default-class"
	AnnAllowVolumeModeChange           = "snapshot.storage.kubernetes.io/allow-volume-mode-change"
	LabelManagedBy                     = "snapshot.storage.kubernetes.io/managed-by"

	// AnnGroupSnapshotHandle marks a content as member of a dynamic group; mind the other domain.
	AnnGroupSnapshotHandle = "groupsnapshot.storage.k8s.io/volumeGroupSnapshotHandle"

	// AnnDefaultGroupSnapshotClass is "true" at a class for group snapshots that name none.
	AnnDefaultGroupSnapshotClass = "groupsnapshot.storage.kubernetes.io/is-default-class"

	// AnnSnapshotParameters holds the driver's parameters as they were resolved when the content was created, as a JSON object,
	// so that every later CreateSnapshot sends the same request, until the driver has refused that one.
	AnnSnapshotParameters = "csi-tandem.io/snapshot-parameters"

	// AnnSnapshotName holds the name that the driver is asked for, beside the parameters and for the same reason: the flags that it is made
	// with may be others after a restart, and the driver would take a second snapshot under another name.
	AnnSnapshotName = "csi-tandem.io/snapshot-name"

	// AnnSourceTopology says where the volume was that the snapshot was taken from, as a JSON list of objects
	// of labels. A restore may come long after that volume is gone.
	AnnSourceTopology = "csi-tandem.io/source-topology"

	// AnnMadeAt is when a binder made the content. A content that was copied from elsewhere, or restored from
	// a backup, has another creation time, and of its snapshot nobody here knows anything.
	AnnMadeAt = "csi-tandem.io/made-at"

	// AnnTakenFrom names the content whose place this one took when it was given to another snapshot.
	AnnTakenFrom = "csi-tandem.io/taken-from"

	// AnnDriverGone is for an administrator to put on a content whose driver was removed for good: with the
	// value "yes" the content goes without anybody asking the driver. What it has stored stays there.
	AnnDriverGone = "csi-tandem.io/driver-gone"

	// AnnRetry is for users to put on an object that waits for its next try: each new value has it tried at once. Claims and
	// PersistentVolumes are tried again at any change, contents at this one.
	AnnRetry = "csi-tandem.io/retry"

	// AnnMarkYes is the only value of marks.
	AnnMarkYes = "yes"
)

// Reserved VolumeSnapshotClass parameters; see ReservedParameterPrefix.
const (
	ParamSnapshotterSecretName              = ReservedParameterPrefix + "snapshotter-secret-name"
	ParamSnapshotterSecretNamespace         = ReservedParameterPrefix + "snapshotter-secret-namespace"
	ParamSnapshotterListSecretName          = ReservedParameterPrefix + "snapshotter-list-secret-name"
	ParamSnapshotterListSecretNamespace     = ReservedParameterPrefix + "snapshotter-list-secret-namespace"
	ParamGroupSnapshotterSecretName         = ReservedParameterPrefix + "group-snapshotter-secret-name"
	ParamGroupSnapshotterSecretNamespace    = ReservedParameterPrefix + "group-snapshotter-secret-namespace"
	ParamGroupSnapshotterGetSecretName      = ReservedParameterPrefix + "group-snapshotter-get-secret-name"
	ParamGroupSnapshotterGetSecretNamespace = ReservedParameterPrefix + "group-snapshotter-get-secret-namespace"
)

// Parameters added to CreateSnapshot by --extra-create-metadata.
const (
	ParamVolumeSnapshotName      = ReservedParameterPrefix + "volumesnapshot/name"
	ParamVolumeSnapshotNamespace = ReservedParameterPrefix + "volumesnapshot/namespace"
	ParamVolumeSnapshotContent   = ReservedParameterPrefix + "volumesnapshotcontent/name"
)

// Event reasons of the binding half.
const (
	ReasonCreatingSnapshot              = "CreatingSnapshot"
	ReasonSnapshotCreated               = "SnapshotCreated"
	ReasonSnapshotReady                 = "SnapshotReady"
	ReasonGetSnapshotClassFailed        = "GetSnapshotClassFailed"
	ReasonSetDefaultSnapshotClassFailed = "SetDefaultSnapshotClassFailed"
	ReasonSnapshotValidationError       = "SnapshotValidationError"
	ReasonSnapshotFinalizerError        = "SnapshotFinalizerError"
	ReasonErrorPVCFinalizer             = "ErrorPVCFinalizer"
	ReasonSnapshotContentMissing        = "SnapshotContentMissing"
	ReasonSnapshotContentMismatch       = "SnapshotContentMismatch"
	ReasonSnapshotContentMisbound       = "SnapshotContentMisbound"
	ReasonSnapshotMisbound              = "SnapshotMisbound"
	ReasonSnapshotHandleSet             = "SnapshotHandleSet"
	ReasonSnapshotBindFailed            = "SnapshotBindFailed"
	ReasonSnapshotContentCreationFailed = "SnapshotContentCreationFailed"
	ReasonCreateSnapshotContentFailed   = "CreateSnapshotContentFailed"
	ReasonSnapshotContentDeleteError    = "SnapshotContentObjectDeleteError"
	ReasonSnapshotDeletePending         = "SnapshotDeletePending"
	ReasonContentValidationError        = "ContentValidationError"

	// ReasonSnapshotUnserved: nobody works on a content.
	ReasonSnapshotUnserved = "SnapshotDriverMissing"
	// ReasonGroupSnapshotNotSupported: nobody works on a group.
	ReasonGroupSnapshotNotSupported = "GroupSnapshotNotSupported"
	// ReasonSnapshotAbandoned: a content went without its driver.
	ReasonSnapshotAbandoned = "SnapshotAbandoned"
	// ReasonBindingLeftToOthers: another program binds the driver's snapshots.
	ReasonBindingLeftToOthers = "SnapshotBindingLeftToOthers"
)

// Event reasons of the driver half.
const (
	ReasonSnapshotCreationFailed = "SnapshotCreationFailed"
	ReasonSnapshotCheckFailed    = "SnapshotContentCheckandUpdateFailed"
	ReasonSnapshotDeleteError    = "SnapshotDeleteError"
	ReasonSnapshotOutcomeUnknown = "SnapshotOutcomeUnknown"
	ReasonSnapshotHandleShared   = "SnapshotHandleShared"
)
