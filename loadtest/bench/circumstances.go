//go:build unix

package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"strconv"
)

// circumstances compare the gateway with itself where something is not as it
// should be, or larger than usual. Nobody has set a mark for them.
func (c *Config) circumstances() []path {
	usual := creatingSide("gateway, many users", c.Gateway, nil)
	compared := func(id, name string, subject, baseline side) path {
		return path{id: id, name: name, unit: rate, connections: c.Connections, subject: subject, baseline: baseline, byName: true}
	}
	all := []path{
		compared("hot-user", "new orders, all of one user", oneUserSide(c.Gateway), usual),
		compared("hot-sku", "new orders, one limited SKU", limitedSide(c.Gateway), usual),
		compared("redis-away-new", "new orders, Redis away", creatingSide("gateway without Redis", c.Gateway, redisAway()), usual),
		compared("redis-away-dup", "duplicates, Redis away",
			replayingSide("gateway without Redis", c.Gateway, merged(redisAway(), withoutProcessTier())),
			replayingSide("gateway", c.Gateway, withoutProcessTier())),
	}
	for _, n := range []int{2, 4} {
		all = append(all, compared("gateways-"+strconv.Itoa(n), fmt.Sprintf("new orders, %d gateways", n), severalSide(c.Gateway, n), usual))
	}
	return all
}

// redisAway points at a port of this machine that refuses connections: RFC 6335
// reserves it.
func redisAway() settings { return settings{"redis.addrs": "127.0.0.1:1"} }

func merged(all ...settings) settings {
	m := settings{}
	for _, set := range all {
		maps.Copy(m, set)
	}
	return m
}

func oneUserSide(binary string) side {
	return side{"gateway, one user", func(ctx context.Context, s *stage) (*target, error) {
		d, err := s.deploy(ctx, binary, nil, s.users[:1], nil)
		if err != nil {
			return nil, err
		}
		return d.creating(s.users[:1]), nil
	}}
}

// limitedSide has stock for what everybody orders, and enough of it.
func limitedSide(binary string) side {
	return side{"gateway, one SKU with stock", func(ctx context.Context, s *stage) (*target, error) {
		d, err := s.deploy(ctx, binary, nil, s.users, s.supply)
		if err != nil {
			return nil, err
		}
		return d.creating(s.users), nil
	}}
}

func (s *stage) supply(ctx context.Context, database string) error {
	connector, err := s.connector(database, nil)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	_, err = db.ExecContext(ctx, "INSERT INTO stock (sku, available, supplied) VALUES ('potsticker', 1000000000000, 1000000000000)")
	if err != nil {
		err = fmt.Errorf("supply: %w", err)
	}
	return errors.Join(err, db.Close())
}

// severalSide has several gateways on one database and one Redis.
func severalSide(binary string, n int) side {
	return side{fmt.Sprintf("%d gateways", n), func(ctx context.Context, s *stage) (t *target, err error) {
		d, err := s.deploy(ctx, binary, nil, s.users, nil)
		if err != nil {
			return nil, err
		}
		defer func() {
			if err != nil {
				err = errors.Join(err, d.closers.close())
			}
		}()
		posters := []poster{newPoster(d.addr)}
		for len(posters) < n {
			if err := s.launch(ctx, d, binary, nil); err != nil {
				return nil, err
			}
			posters = append(posters, newPoster(d.addr))
		}
		return &target{
			worker: func(ctx context.Context, i int) (worker, error) {
				return posters[i%n].worker(ctx, fresh(s.users), made), nil
			},
			stop: d.closers.close,
		}, nil
	}}
}
