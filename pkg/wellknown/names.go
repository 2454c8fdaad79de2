// SPDX-License-Identifier: Apache-2.0

package wellknown

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"
)

// MaxUIDDigits is how many digits a UID has without its dashes: the largest useful value of the
// --…-uuid-length flags.
const MaxUIDDigits = 32

// FullUID is the value of the --…-uuid-length flags that keeps the UID whole, dashes included.
const FullUID = -1

// maxPrefix leaves room for a dash and a whole UID in the 128 bytes that the CSI spec allows for a string.
const maxPrefix = 128 - 1 - 36

// objectPrefix is the beginning of a DNS subdomain, which the names of API objects have to be.
var objectPrefix = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*-*$`)

// CheckNameParts refuses the values of a name prefix flag and a UID length flag that could not make a
// unique name. flagPrefix is what the flags' names start with, such as "volume-name".
func CheckNameParts(flagPrefix, prefix string, length int) error {
	if prefix == "" {
		return fmt.Errorf("--%s-prefix must not be empty: every object of the driver needs a name", flagPrefix)
	}
	if len(prefix) > maxPrefix {
		return fmt.Errorf("--%s-prefix is %d bytes long: use at most %d, so that names fit into what the CSI spec allows", flagPrefix, len(prefix), maxPrefix)
	}
	if length != FullUID && (length < 1 || length > MaxUIDDigits) {
		return fmt.Errorf("--%s-uuid-length=%d: use -1 for the whole UID, or 1 to %d digits", flagPrefix, length, MaxUIDDigits)
	}
	return nil
}

// CheckObjectPrefix refuses the value of a name prefix flag with which no API object could be named: the
// volume would be made at the driver, and its PersistentVolume refused.
func CheckObjectPrefix(flagPrefix, prefix string) error {
	if prefix == "" || objectPrefix.MatchString(prefix) {
		return nil
	}
	return fmt.Errorf("--%s-prefix=%s: use lower-case letters, digits, dashes and dots, beginning with a letter or digit: PersistentVolumes are named with it", flagPrefix, prefix)
}

// Name joins a prefix with the UID of the object that the name stands for: the whole UID when length is
// FullUID, else its first length digits without dashes. The name depends on nothing else, so a repeated
// request is recognised by the driver.
func Name(prefix, uid string, length int) string {
	if length == FullUID {
		return prefix + "-" + uid
	}
	digits := strings.ReplaceAll(uid, "-", "")
	return prefix + "-" + digits[:min(max(length, 0), len(digits))]
}

// IsNameFor tells that a name was made for the UID, whatever the prefix and the length were.
func IsNameFor(name, uid string) bool {
	if uid == "" || strings.HasSuffix(name, "-"+uid) {
		return uid != ""
	}
	digits := name[strings.LastIndex(name, "-")+1:]
	return digits != name && digits != "" && strings.HasPrefix(strings.ReplaceAll(uid, "-", ""), digits)
}

// VolumeNameFromUID is the name of the PersistentVolume of a claim under default flags. Other
// components recognise it whatever the name flags say.
func VolumeNameFromUID(claimUID string) string { return "pvc-" + claimUID }

// ContentName is the name of the VolumeSnapshotContent made for a VolumeSnapshot.
func ContentName(snapshotUID string) string { return "snapcontent-" + snapshotUID }

// AnnLed is on the lease of a provisioner that writes down what it has begun: which times in a row it was held by such ones, as the lease counts them.
const AnnLed = "csi-tandem.io/led"

// BinderLease is the lease of the program that binds snapshots for the whole cluster.
const BinderLease = "snapshot-controller-leader"

// SnapshotterLease is the lease of the driver half of the snapshotter.
func SnapshotterLease(driver string) string { return "external-snapshotter-leader-" + driver }

var (
	notInLeaseName = regexp.MustCompile("[^a-zA-Z0-9-]")
	objectName     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
)

// AttemptsName is what the names of the objects begin with that hold the record of open attempts: of a driver,
// on one node or, when that is empty, for the whole cluster. It is the driver's own name and not that of its
// lease, which is the same for drivers that differ in a dot: the one would repeat the other's requests. A name
// that no object can have is told from those alike by a hash, and a long one is cut to leave room for the number
// behind.
func AttemptsName(driver, node string) string {
	const longest = 240
	name := driver
	if !objectName.MatchString(driver) {
		sum := sha256.Sum256([]byte(driver))
		name = fmt.Sprintf("%s-%x", strings.ToLower(strings.Trim(SanitizeLease(driver), "-")), sum[:4])
	}
	name += "-attempts"
	if node == "" {
		return name
	}
	if name += "-" + node; len(name) <= longest {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return fmt.Sprintf("%s-%x", strings.TrimRight(name[:longest-17], "-."), sum[:8])
}

// SanitizeLease makes a lease name (or identity) of any text: characters outside [a-zA-Z0-9-] become
// dashes, and a trailing dash gets an X, so that old and new sidecars agree on who leads.
func SanitizeLease(text string) string {
	text = notInLeaseName.ReplaceAllString(text, "-")
	if strings.HasSuffix(text, "-") {
		return text + "X"
	}
	return text
}
