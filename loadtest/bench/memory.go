//go:build unix

package bench

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/oncegate/oncegate/loadtest/drive"
)

const (
	// The gateway's own bounds for what it remembers.
	defaultEntries = 50_000
	defaultBytes   = 64 * mebi
	// boundless is more receipts than the other bound lets in.
	boundless = 10_000_000
	// full is the share of a bound at which the memory for receipts is full: it
	// is split, and the last room of every part is never used.
	full = 0.95
	// warmth is how many receipts each connection asks for before what they take
	// is measured.
	warmth = 8
)

// memory tells what a key takes in Redis, and what connections and receipts
// take in a gateway.
func (s *stage) memory(ctx context.Context) (sheets []Sheet, err error) {
	if err := allowDescriptors(s.c.Open); err != nil {
		return nil, err
	}
	// Nothing is to go while it is counted.
	patient := settings{"http.idle_timeout": "30m", "cache.local_ttl": "1h"}
	d, err := s.deploy(ctx, s.c.Gateway, patient, s.users, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.closers.close()) }()

	gateway := Sheet{
		Title: "Memory of a gateway", Of: "state",
		Columns: []Column{
			{"resident", octets},
			{"after a collection", octets},
			{"live heap and stacks", octets},
			{"receipts", count},
			{"counted for them", octets},
			{"live for each", octets},
		},
	}
	redis := Sheet{
		Title: "Memory of a key in Redis", Of: "key",
		Columns: []Column{{"keys", count}, {"used_memory for each", octets}, {"MEMORY USAGE, mean", octets}, {"name", octets}, {"value", octets}},
	}
	for _, step := range []func() error{
		func() error { return s.connectionsMemory(ctx, d, &gateway) },
		func() error { return s.markMemory(ctx, d, &redis) },
		func() error { return s.receiptMemory(ctx, d, &redis) },
		func() error { return s.tierMemory(ctx, d, &gateway) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return []Sheet{gateway, redis}, nil
}

// connectionsMemory looks at a gateway at rest, with many connections, and
// without them again.
func (s *stage) connectionsMemory(ctx context.Context, d *deployment, sheet *Sheet) error {
	idle, err := s.footprint(ctx, d.admin)
	if err != nil {
		return err
	}
	sheet.add("started", idle.figures(untold())...)
	n := s.c.Open
	s.say("  opening %s connections", grouped(int64(n)))
	h, err := hold(ctx, d.addr, n)
	defer h.close()
	if err != nil {
		return err
	}
	open, err := s.footprint(ctx, d.admin)
	if err != nil {
		return err
	}
	sheet.add(grouped(int64(n))+" idle connections", open.figures(once((open.live-idle.live)/float64(n)))...)
	h.close()
	if err := leftAlone(ctx, d.admin, idle.goroutines); err != nil {
		return fmt.Errorf("close the connections: %w", err)
	}
	closed, err := s.footprint(ctx, d.admin)
	if err != nil {
		return err
	}
	sheet.add("all of them closed", closed.figures(untold())...)
	return nil
}

func (f *footprint) figures(each Figure) []Figure {
	return []Figure{once(f.resident), once(f.collected), once(f.live), untold(), untold(), each}
}

// tierMemory looks at gateways that were asked for all receipts once: one that
// remembers as many as the defaults let in, and one whose bound is that of bytes.
func (s *stage) tierMemory(ctx context.Context, d *deployment, sheet *Sheet) error {
	for _, tier := range []struct {
		name    string
		set     settings
		bounded string // what is full first
		bound   float64
	}{
		{"receipts, default bounds", nil, "oncegate_filter_local_receipts", defaultEntries},
		{"receipts, bound by bytes", settings{"cache.local_entries": strconv.Itoa(boundless)}, "oncegate_filter_local_bytes", defaultBytes},
	} {
		err := s.fullTier(ctx, d, tier.set, func(warm, all *remembering) {
			sheet.add(tier.name, once(all.resident), once(all.collected), once(all.live),
				once(all.receipts()), once(all.gauges["oncegate_filter_local_bytes"]), all.each(warm))
			if all.gauges[tier.bounded] < full*tier.bound {
				sheet.note("%s: not full with these keys; more of them (--keys) would fill it", tier.name)
			}
		})
		if err != nil {
			return fmt.Errorf("%s: %w", tier.name, err)
		}
	}
	sheet.note("live for each receipt: against the same gateway when each of the connections had asked for %d of them", warmth)
	return nil
}

// remembering is a gateway that has receipts, at rest.
type remembering struct {
	footprint
	gauges gauges
}

func (r *remembering) receipts() float64 { return r.gauges["oncegate_filter_local_receipts"] }

// each is what a receipt takes, by those that came after warm: what the requests
// themselves leave in pools is in both, and is not theirs.
func (r *remembering) each(warm *remembering) Figure {
	more := r.receipts() - warm.receipts()
	if more <= 0 {
		return untold()
	}
	return once((r.live - warm.live) / more)
}

// fullTier starts another gateway on the same database, asks it for a few receipts
// and then for all, and tells what it has after either.
func (s *stage) fullTier(ctx context.Context, d *deployment, set settings, tell func(warm, all *remembering)) (err error) {
	other := &deployment{database: d.database}
	defer func() { err = errors.Join(err, other.closers.close()) }()
	if err := s.launch(ctx, other, s.c.Gateway, merged(settings{"cache.local_ttl": "1h"}, set)); err != nil {
		return err
	}
	s.say("  asking another gateway for all of them")
	var told [2]remembering
	for i, n := range []int{min(warmth*s.c.most(), s.c.Keys), s.c.Keys} {
		if err := s.each(ctx, other.addr, n, replayed); err != nil {
			return err
		}
		if told[i].footprint, err = s.footprint(ctx, other.admin); err != nil {
			return err
		}
		if told[i].gauges, err = readGauges(ctx, other.admin); err != nil {
			return err
		}
	}
	tell(&told[0], &told[1])
	return nil
}

// each asks for one order after another, each with a key of its own that is the
// same whenever it is asked for.
func (s *stage) each(ctx context.Context, addr string, n int, right func(*answer) error) error {
	p := newPoster(addr)
	workers := min(n, s.c.most())
	err := everyone(ctx, workers, func(ctx context.Context, i int) error {
		at := i
		w := p.worker(ctx, func() (drive.Identity, string) { return s.users[at%len(s.users)], numberedKey(at) }, right)
		defer w.close()
		for ; at < n; at += workers {
			if err := w.step(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%d orders: %w", n, err)
	}
	return nil
}

// numberedKey looks as any other key, and is that of a number.
func numberedKey(i int) string {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(i)) //nolint:gosec // G115: a count
	sum := sha256.Sum256(n[:])
	return uuidText([16]byte(sum[:16]))
}
