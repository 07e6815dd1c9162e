//go:build unix

package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/oncegate/oncegate/loadtest/measure"
)

// storms tell what one key costs that many clients ask for at once, at one
// gateway and at three.
func (s *stage) storms(ctx context.Context) ([]Sheet, error) {
	if err := allowDescriptors(s.c.Clients); err != nil {
		return nil, err
	}
	sheet := Sheet{
		Title: fmt.Sprintf("One key, %s clients at once", grouped(int64(s.c.Clients))), Of: "gateways",
		Columns: []Column{
			{"transactions", count},
			{"commits", count},
			{"rollbacks", count},
			{"rows read", count},
			{"rows inserted", count},
			{"row lock waits", count},
			{"Redis commands", count},
			{"first answer", elapsed},
			{"last answer", elapsed},
			{"last has the order", elapsed},
			{"created", count},
			{"replayed at once", count},
			{"409 first", count},
			{"503 first", count},
		},
	}
	for _, n := range []int{1, 3} {
		if err := s.storm(ctx, n, &sheet); err != nil {
			return nil, fmt.Errorf("gateways: %d: %w", n, err)
		}
	}
	sheet.note("rounds: %d, a new key in each; everybody got the same bytes, from one order", s.c.Rounds)
	return []Sheet{sheet}, nil
}

func (s *stage) storm(ctx context.Context, gateways int, sheet *Sheet) (err error) {
	d, err := s.deploy(ctx, s.c.Gateway, nil, s.users, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.closers.close()) }()
	addrs, admins := []string{d.addr}, []string{d.admin}
	for len(addrs) < gateways {
		if err := s.launch(ctx, d, s.c.Gateway, nil); err != nil {
			return err
		}
		addrs, admins = append(addrs, d.addr), append(admins, d.admin)
	}
	who := s.users[0]
	if err := d.prime(ctx, s.users[:1]); err != nil {
		return err
	}
	c, err := gather(ctx, addrs, s.c.Clients, request{who, knownKey(who), orderBody})
	defer c.close()
	if err != nil {
		return err
	}
	alone, err := s.background(ctx, admins)
	if err != nil {
		return err
	}
	sheet.note("gateways: %d: beside the storm they commit %.1f times a second and send %.1f Redis commands", gateways, alone.commits, alone.commands)
	figures := make([]Figure, len(sheet.Columns))
	for round := range s.c.Rounds {
		before, err := s.quiet(ctx, admins)
		if err != nil {
			return err
		}
		all := c.ask(ctx, request{who, "storm-" + rand.Text(), orderBody})
		if err := agree(all); err != nil {
			return err
		}
		after, err := s.quiet(ctx, admins)
		if err != nil {
			return err
		}
		commands := after.redis.since(before.redis)
		values := stormValues(all, before, after)
		for i, v := range values {
			figures[i] = append(figures[i], v)
		}
		s.say("  %d gateways, round %d: %.0f transactions, Redis: %s", gateways, round+1, values[0], commands.list())
	}
	sheet.add(fmt.Sprint(gateways), figures...)
	return nil
}

// upkeep is what gateways do per second that nobody asks for anything.
type upkeep struct{ commits, commands float64 }

// background watches for a while; the polling of the storm has its part in it.
func (s *stage) background(ctx context.Context, admins []string) (u upkeep, err error) {
	before, err := s.quiet(ctx, admins)
	if err != nil {
		return u, err
	}
	begin := time.Now()
	sleepUntil(ctx, begin.Add(2*time.Second))
	after, err := s.traffic(ctx, admins)
	if err != nil {
		return u, err
	}
	long := time.Since(begin).Seconds()
	return upkeep{
		after.sql.since(before.sql)["com_commit"] / long, after.redis.since(before.redis).sum() / long,
	}, nil
}

// stormValues are in the order of the columns.
func stormValues(all []cry, before, after traffic) []float64 {
	sql := after.sql.since(before.sql)
	first, last, served := all[0].heard, all[0].heard, all[0].served
	made := 0.0
	var firsts measure.Counts
	for i := range all {
		c := &all[i]
		first, last, served = min(first, c.heard), max(last, c.heard), max(served, c.served)
		firsts[c.first]++
		if c.created {
			made++
		}
	}
	return []float64{
		after.ledgers.since(before.ledgers).sum(), sql["com_commit"], sql["com_rollback"],
		sql["innodb_rows_read"], sql["innodb_rows_inserted"], sql["innodb_row_lock_waits"],
		after.redis.since(before.redis).sum(), first.Seconds(), last.Seconds(), served.Seconds(), made,
		float64(firsts[measure.Replayed]), float64(firsts[measure.InProgress]), float64(firsts[measure.Unavailable]),
	}
}
