// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
)

// greetPatience is short: a driver that is said to be there should answer at once.
const greetPatience = 5 * time.Second

// Greet asks a driver that runs already for its name, before anything is set up for it.
func Greet(ctx context.Context, address string) (name string, err error) {
	rest, ok := strings.CutPrefix(address, "unix://")
	if !ok || !path.IsAbs(rest) {
		return "", fmt.Errorf("%q is not of the form unix:///absolute/path/of/a/socket", address)
	}
	e, err := dial(address)
	if err != nil {
		return "", err
	}
	defer e.connection.Close()
	ctx, cancel := context.WithTimeout(ctx, greetPatience)
	defer cancel()
	about, err := e.identity.GetPluginInfo(ctx, &csi.GetPluginInfoRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return "", fmt.Errorf("no driver answers GetPluginInfo at %s: %w", address, err)
	}
	if about.GetName() == "" {
		return "", fmt.Errorf("the driver at %s has no name", address)
	}
	return about.GetName(), nil
}
