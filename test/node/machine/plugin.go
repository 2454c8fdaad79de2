// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// cniVersion is the version of the Container Network Interface that is answered in.
const cniVersion = "1.0.0"

type cniResult struct {
	Version    string         `json:"cniVersion"`
	Interfaces []cniInterface `json:"interfaces"`
	IPs        []cniAddress   `json:"ips"`
}

type cniInterface struct {
	Name    string `json:"name"`
	Sandbox string `json:"sandbox"`
}

type cniAddress struct {
	Address   string `json:"address"`
	Interface int    `json:"interface"`
}

// plugin gives a pod its loopback device and nothing else. The address that it tells is there because a runtime wants
// one; it is from the block for documentation, and nobody has it.
func plugin(command string, in io.Reader, out io.Writer) error {
	if _, err := io.Copy(io.Discard, in); err != nil {
		return fmt.Errorf("reading the network's configuration: %w", err)
	}
	switch command {
	case "VERSION":
		return json.NewEncoder(out).Encode(map[string]any{"cniVersion": cniVersion, "supportedVersions": []string{cniVersion}})
	case "ADD":
		return json.NewEncoder(out).Encode(cniResult{
			Version:    cniVersion,
			Interfaces: []cniInterface{{Name: os.Getenv("CNI_IFNAME"), Sandbox: os.Getenv("CNI_NETNS")}},
			IPs:        []cniAddress{{Address: "192.0.2.1/32", Interface: 0}},
		})
	}
	return nil
}
