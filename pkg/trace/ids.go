// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"sync/atomic"
)

// ids makes the ids of spans from a seed, and the id of a trace from what the trace is about. So the retries of one operation
// are in one trace, whichever process makes them, and nothing has to be stored for that.
type ids struct {
	seed  [32]byte
	count atomic.Uint64
}

func newIDs(chance io.Reader) (*ids, error) {
	g := &ids{}
	if _, err := io.ReadFull(chance, g.seed[:]); err != nil {
		return nil, fmt.Errorf("reading the seed of span ids: %w", err)
	}
	return g, nil
}

func (g *ids) next() [32]byte {
	return sha256.Sum256(binary.BigEndian.AppendUint64(g.seed[:], g.count.Add(1)))
}

func (g *ids) span() SpanID {
	sum := g.next()
	return SpanID(sum[:8])
}

// trace is one for each object and operation, and of its own for what has no object.
func (g *ids) trace(s Subject) TraceID {
	whose := s.UID
	if s.Of != "" {
		whose = s.Of
	}
	sum := g.next()
	if whose != "" {
		sum = sha256.Sum256([]byte("csi-tandem/" + whose + "/" + string(s.Operation)))
	}
	return TraceID(sum[:16])
}

// share is how much is traced, as OpenTelemetry's samplers take it from the id of the trace: all that happens to one object
// is traced or none, and a driver with the same share takes the same traces.
type share uint64

const everything share = math.MaxUint64

func shareOf(ratio float64) share {
	if ratio >= 1 {
		return everything
	}
	return share(ratio * (1 << 63))
}

func (s share) has(t TraceID) bool { return share(binary.BigEndian.Uint64(t[8:])>>1) < s }
