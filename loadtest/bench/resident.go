//go:build unix

package bench

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// footprint is the memory of a gateway at one moment.
type footprint struct {
	resident  float64 // what the kernel counts, before
	collected float64 // and after a collection
	live      float64 // heap and stacks in use after the collection

	goroutines float64 // before
}

// footprint waits until a gateway's memory is at rest and asks for it, before
// and after a collection. Between the two Go still gives pages back.
func (s *stage) footprint(ctx context.Context, admin string) (f footprint, err error) {
	g, err := atRest(ctx, admin)
	if err != nil {
		return f, err
	}
	if f.resident, err = g.need("process_resident_memory_bytes"); err != nil {
		return f, err
	}
	f.goroutines = g["go_goroutines"]
	// What lies in a pool outlives the first collection.
	var heap bytes.Buffer
	for range 2 {
		heap.Reset()
		if err := askAdmin(ctx, admin, "/debug/pprof/heap?gc=1&debug=1", &heap); err != nil {
			return f, err
		}
	}
	if f.live, err = liveBytes(heap.String()); err != nil {
		return f, err
	}
	if g, err = atRest(ctx, admin); err != nil {
		return f, err
	}
	f.collected = g["process_resident_memory_bytes"]
	return f, nil
}

// liveBytes reads heap and stacks in use out of a heap profile in text form,
// which ends with what the runtime says of its memory.
func liveBytes(profile string) (float64, error) {
	sum := 0.0
	for _, name := range []string{"\n# HeapAlloc = ", "\n# Stack = "} {
		_, after, _ := strings.Cut(profile, name)
		number := after[:strings.IndexFunc(after+" ", func(r rune) bool { return r < '0' || r > '9' })]
		n, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return 0, fmt.Errorf("the gateway's heap profile does not tell %q", strings.TrimSpace(name))
		}
		sum += n
	}
	return sum, nil
}

const (
	restTick     = 250 * time.Millisecond
	restTicks    = 4 // without a change that counts
	restPatience = 10 * time.Second
	restNoise    = 0.005
)

// atRest returns the metrics when resident memory has not changed for a second,
// or when it does not come to rest.
func atRest(ctx context.Context, admin string) (gauges, error) {
	ctx, cancel := context.WithTimeout(ctx, restPatience+10*time.Second)
	defer cancel()
	end := time.Now().Add(restPatience)
	last, calm := 0.0, 0
	for {
		g, err := readGauges(ctx, admin)
		if err != nil {
			return nil, err
		}
		now, err := g.need("process_resident_memory_bytes")
		if err != nil {
			return nil, err
		}
		if calm++; math.Abs(now-last) > restNoise*now {
			last, calm = now, 0
		}
		if calm >= restTicks || time.Now().After(end) {
			return g, nil
		}
		sleepUntil(ctx, time.Now().Add(restTick))
	}
}

// leftAlone waits until a gateway has noticed that its connections are closed:
// until it has about as many goroutines as it had before.
func leftAlone(ctx context.Context, admin string, before float64) error {
	const few = 20 // that come and go
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		g, err := readGauges(ctx, admin)
		if err != nil {
			return err
		}
		now, err := g.need("go_goroutines")
		if err != nil || now <= before+few {
			return err
		}
		sleepUntil(ctx, time.Now().Add(restTick))
	}
}
