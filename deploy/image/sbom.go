// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha1" //nolint:gosec // SPDX demands it of every file, and nothing is secured by it
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"time"
)

// The document is SPDX 2.3; the names of its fields are those of that standard.
type document struct {
	Version       string         `json:"spdxVersion"`
	DataLicense   string         `json:"dataLicense"`
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	Creation      creation       `json:"creationInfo"`
	Packages      []component    `json:"packages"`
	Files         []file         `json:"files"`
	Relationships []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type component struct {
	ID               string      `json:"SPDXID"`
	Name             string      `json:"name"`
	Version          string      `json:"versionInfo,omitempty"`
	DownloadLocation string      `json:"downloadLocation"`
	FilesAnalyzed    bool        `json:"filesAnalyzed"`
	LicenseConcluded string      `json:"licenseConcluded"`
	LicenseDeclared  string      `json:"licenseDeclared"`
	Copyright        string      `json:"copyrightText"`
	Comment          string      `json:"comment,omitempty"`
	Refs             []reference `json:"externalRefs,omitempty"`
}

type reference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type file struct {
	ID               string     `json:"SPDXID"`
	Name             string     `json:"fileName"`
	Types            []string   `json:"fileTypes"`
	Checksums        []checksum `json:"checksums"`
	LicenseConcluded string     `json:"licenseConcluded"`
	Copyright        string     `json:"copyrightText"`
}

type checksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type relationship struct {
	From string `json:"spdxElementId"`
	Type string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

const (
	documentID = "SPDXRef-DOCUMENT"
	mainID     = "SPDXRef-Package-main"
	stdlibID   = "SPDXRef-Package-stdlib"
	binaryID   = "SPDXRef-File-binary"
	unasserted = "NOASSERTION"
)

// sbom describes what is in a binary by what the linker wrote there: a list that is made from go.mod would also have what is
// only needed for tests.
func sbom(i image, version string, b binary) ([]byte, error) {
	sums, err := sumsOf(b.file)
	if err != nil {
		return nil, err
	}
	d := document{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: documentID, Name: fmt.Sprintf("%s-%s-linux-%s", i.name, version, b.arch),
		Namespace: fmt.Sprintf("https://%s/spdx/%s/%s/%s", b.info.Main.Path, i.name, b.arch, sums[1].Value),
		Creation:  creation{b.created().Format(time.RFC3339), []string{"Organization: csi-tandem", "Tool: csi-tandem-image"}},
		Files: []file{{
			ID: binaryID, Name: "./" + i.name, Types: []string{"BINARY"}, Checksums: sums,
			LicenseConcluded: unasserted, Copyright: unasserted,
		}},
		Relationships: []relationship{{documentID, "DESCRIBES", mainID}, {binaryID, "GENERATED_FROM", mainID}},
	}
	d.Packages = append(d.Packages, mainPackage(version, b), stdlib(b.info.GoVersion))
	d.Relationships = append(d.Relationships, relationship{mainID, "DEPENDS_ON", stdlibID})
	for _, module := range b.info.Deps {
		c := moduleOf(module)
		d.Packages = append(d.Packages, c)
		d.Relationships = append(d.Relationships, relationship{mainID, "DEPENDS_ON", c.ID})
	}
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the SBOM: %w", err)
	}
	return append(text, '\n'), nil
}

func mainPackage(version string, b binary) component {
	c := packageOf(b.info.Main.Path, version)
	c.ID, c.LicenseConcluded, c.LicenseDeclared = mainID, "Apache-2.0", "Apache-2.0"
	if revision := b.revision(); revision != "" {
		c.Comment = "built from commit " + revision
	}
	return c
}

// stdlib is a package of its own for those who look up what is known to be vulnerable.
func stdlib(goVersion string) component {
	c := packageOf("stdlib", strings.TrimPrefix(strings.Fields(goVersion + " ")[0], "go"))
	c.ID, c.LicenseDeclared, c.LicenseConcluded = stdlibID, "BSD-3-Clause", "BSD-3-Clause"
	return c
}

func moduleOf(m *debug.Module) component {
	used := m
	if m.Replace != nil {
		used = m.Replace
	}
	c := packageOf(used.Path, used.Version)
	if m.Replace != nil {
		c.Comment = fmt.Sprintf("replaces %s %s", m.Path, m.Version)
	}
	return c
}

// notInID is what SPDX does not allow in the name of an element.
var notInID = regexp.MustCompile(`[^A-Za-z0-9.-]`)

func packageOf(path, version string) component {
	return component{
		ID: "SPDXRef-Package-" + notInID.ReplaceAllString(path+"-"+version, "-"), Name: path, Version: version,
		DownloadLocation: unasserted, LicenseConcluded: unasserted, LicenseDeclared: unasserted, Copyright: unasserted,
		Refs: []reference{{"PACKAGE-MANAGER", "purl", purl(path, version)}},
	}
}

// purl is a package URL; a plus sign means a space there unless it is escaped.
func purl(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
}

func sumsOf(name string) ([]checksum, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	first, second := sha1.Sum(content), sha256.Sum256(content) //nolint:gosec // as above
	return []checksum{{"SHA1", hex.EncodeToString(first[:])}, {"SHA256", hex.EncodeToString(second[:])}}, nil
}
