// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"errors"
	"fmt"
	"regexp"
)

// The bounds of what a driver says. gRPC's own bound of 4 MiB for one answer stands before them: what is larger never gets
// here, and counts as no answer (see fault).
const (
	// maxName is the CSI spec's (GetPluginInfo), and that of every object of Kubernetes which names a driver.
	maxName = 63
	// maxID is far beyond the 128 bytes of the CSI spec, which drivers in the field do not keep. An object with a longer one
	// may not be stored, and then nothing could ever delete the snapshot.
	maxID = 16 << 10
)

// driverName is what the CSI spec lets a driver be called (GetPluginInfo).
var driverName = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?$`)

// checkName refuses a name with which no volume could be stored: leases, labels of metrics and objects are made of it. An
// underscore is against the spec, and harmless.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("it answered with an empty name")
	case len(name) > maxName:
		return fmt.Errorf("it answered with a name of %d bytes, and CSI allows %d", len(name), maxName)
	case !driverName.MatchString(name):
		return fmt.Errorf("it answered with the name %q: CSI allows letters, digits, dashes and dots, with a letter or digit at both ends", name)
	}
	return nil
}
