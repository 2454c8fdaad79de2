// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/csi-tandem/csi-tandem/pkg/topology"
)

// recordedPlaces is a requirement: the table of its segments, in parts, and two lists of positions in the
// table. Requests of one cluster name the same segments in another order, and a large one names most of
// what its neighbour names, so the parts are few however many attempts there are.
type recordedPlaces struct {
	Parts     []string `json:"parts,omitempty"`
	Requisite string   `json:"requisite,omitempty"`
	Preferred string   `json:"preferred,omitempty"`
}

const (
	// partSize is how many segments a part has on average. Where one ends is decided by its segments alone,
	// so that two tables that differ in some have the rest in common.
	partSize = 64
	// maxPlaces bounds the lists of a record that was edited.
	maxPlaces = 10 * topology.MaxSegments
)

func recordPlaces(requirement *csi.TopologyRequirement, parts map[string]string) (*recordedPlaces, error) {
	if requirement == nil {
		return nil, nil
	}
	requisite, err := segmentTexts(requirement.GetRequisite())
	if err != nil {
		return nil, err
	}
	preferred, err := segmentTexts(requirement.GetPreferred())
	if err != nil {
		return nil, err
	}
	table := slices.Concat(requisite, preferred)
	slices.Sort(table)
	table = slices.Compact(table)
	at := make(map[string]int, len(table))
	for i, text := range table {
		at[text] = i
	}
	r := &recordedPlaces{Requisite: positions(requisite, at), Preferred: positions(preferred, at)}
	for begin, i := 0, 0; i < len(table); i++ {
		if i == len(table)-1 || isPartEnd(table[i]) {
			text := "[" + strings.Join(table[begin:i+1], ",") + "]"
			name := partName(text)
			parts[name], r.Parts = text, append(r.Parts, name)
			begin = i + 1
		}
	}
	return r, nil
}

func segmentTexts(list []*csi.Topology) ([]string, error) {
	texts := make([]string, 0, len(list))
	for _, place := range list {
		segments := place.GetSegments()
		if segments == nil {
			segments = map[string]string{}
		}
		text, err := json.Marshal(segments) // sorts the keys
		if err != nil {
			return nil, fmt.Errorf("encoding a segment: %w", err)
		}
		texts = append(texts, string(text))
	}
	return texts, nil
}

func isPartEnd(text string) bool {
	h := fnv.New32a()
	h.Write([]byte(text))
	return h.Sum32()%partSize == 0
}

func partName(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// positions writes where texts stand in a table, as ranges: "7-999,0-6".
func positions(texts []string, at map[string]int) string {
	var ranges []string
	for i := 0; i < len(texts); {
		first, n := at[texts[i]], 1
		for i+n < len(texts) && at[texts[i+n]] == first+n {
			n++
		}
		if n == 1 {
			ranges = append(ranges, strconv.Itoa(first))
		} else {
			ranges = append(ranges, fmt.Sprintf("%d-%d", first, first+n-1))
		}
		i += n
	}
	return strings.Join(ranges, ",")
}

func (r *recordedPlaces) requirement(parts map[string]string) (*csi.TopologyRequirement, error) {
	if r == nil {
		return nil, nil
	}
	var table []*csi.Topology
	for _, name := range r.Parts {
		var segments []map[string]string
		text, ok := parts[name]
		if !ok {
			return nil, fmt.Errorf("part %q of them is missing", name)
		}
		if err := json.Unmarshal([]byte(text), &segments); err != nil {
			return nil, fmt.Errorf("part %q of them: %w", name, err)
		}
		for _, s := range segments {
			table = append(table, &csi.Topology{Segments: s})
		}
		if len(table) > maxPlaces {
			return nil, errors.New("they are too many")
		}
	}
	requisite, err := pick(table, r.Requisite)
	if err != nil {
		return nil, err
	}
	preferred, err := pick(table, r.Preferred)
	return &csi.TopologyRequirement{Requisite: requisite, Preferred: preferred}, err
}

// pick reads what positions has written.
func pick(table []*csi.Topology, ranges string) ([]*csi.Topology, error) {
	if ranges == "" {
		return nil, nil
	}
	var picked []*csi.Topology
	for text := range strings.SplitSeq(ranges, ",") {
		from, to, isRange := strings.Cut(text, "-")
		first, err := strconv.Atoi(from)
		last := first
		if isRange && err == nil {
			last, err = strconv.Atoi(to)
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("range %q: %w", text, err)
		case first < 0 || last < first || last >= len(table):
			return nil, fmt.Errorf("range %q is outside of the table", text)
		case len(picked)+last-first >= maxPlaces:
			return nil, errors.New("they are too many")
		}
		picked = append(picked, table[first:last+1]...)
	}
	return picked, nil
}
