//go:build unix

package bench

import (
	"context"
	"slices"
	"time"
)

// unit says what a side is measured in.
type unit string

const (
	rate    unit = "per second"
	halfway unit = "p50" // of the time that one takes
	elapsed unit = "seconds"
	octets  unit = "bytes"
	count   unit = "number"
)

// path is one comparison.
type path struct {
	id, name          string
	unit              unit
	subject, baseline side
	connections       []int // to measure at
	target            Target
	asked             []int  // connections at which the target is asked for; none: at all of them
	byName            bool   // it is only measured when it is named
	layer             string // that must give the subject's answers; "" where any may
}

func (p *path) targetAt(connections int) *Target {
	if p.target == (Target{}) || len(p.asked) > 0 && !slices.Contains(p.asked, connections) {
		return nil
	}
	return &p.target
}

func ids(paths []path) []string {
	var all []string
	for i := range paths {
		all = append(all, paths[i].id)
	}
	return all
}

// chosen are the paths that the user wants.
func (c *Config) chosen() []path {
	all := c.paths()
	return slices.DeleteFunc(all, func(p path) bool {
		if len(c.Paths) == 0 {
			return p.byName
		}
		return !slices.Contains(c.Paths, p.id)
	})
}

func (c *Config) paths() []path {
	if c.Against != "" {
		return c.againstBuild()
	}
	return append(c.againstBaselines(), c.circumstances()...)
}

// withoutProcessTier sends every duplicate to Redis.
func withoutProcessTier() settings { return settings{"cache.process_tier": "false"} }

const (
	layerRedis   = "redis"
	layerProcess = "process"
)

// busy is the number of connections that the design asks for new orders at.
const busy = 256

// againstBaselines are the rows of the design, with what each asks for.
func (c *Config) againstBaselines() []path {
	all := []path{
		{
			id: "new-http", name: "new orders", unit: rate, connections: c.Connections,
			subject:  creatingSide("gateway", c.Gateway, nil),
			baseline: creatingSide("a transaction per order, over HTTP", c.Gateway, perOrder(c.most())),
			target:   Target{AtLeast: 4.5, Aim: 6}, asked: []int{busy},
		},
		{
			id: "new-sql", name: "new orders", unit: rate, connections: c.Connections,
			subject:  creatingSide("gateway", c.Gateway, nil),
			baseline: side{"a transaction per order, straight to MySQL", openStraight},
			target:   Target{AtLeast: 2.7, Aim: 4}, asked: []int{busy},
		},
		{
			id: "dup-redis", name: "duplicates from Redis", unit: rate, connections: c.Connections, layer: layerRedis,
			subject:  replayingSide("gateway", c.Gateway, withoutProcessTier()),
			baseline: side{"Gin and one Redis command", openOneCommand},
			target:   Target{AtLeast: 1.4, Aim: 1.6},
		},
		{
			id: "dup-process", name: "duplicates in process", unit: rate, connections: c.Connections, layer: layerProcess,
			subject:  replayingSide("gateway", c.Gateway, nil),
			baseline: side{"Gin that does nothing", openBare},
			target:   Target{AtLeast: 0.7, Aim: 0.9},
		},
		{
			id: "idle", name: "one order, idle, p50", unit: halfway, connections: []int{1},
			subject:  creatingSide("gateway", c.Gateway, nil),
			baseline: side{"a transaction straight to MySQL", openStraight},
			target:   Target{AtLeast: 1.3, Aim: 1.1, Lower: true},
		},
	}
	if c.Records > 0 {
		all = append(all, path{
			id: "records", name: "new orders, " + grouped(c.Records) + " records", unit: rate, connections: []int{c.most()},
			subject:  fullSide(c.Gateway, c.Records, c.Records),
			baseline: fullSide(c.Gateway, c.Records, 0),
			target:   Target{AtLeast: 0.85, Aim: 0.95},
		})
	}
	return all
}

// againstBuild compares two builds of the gateway on the paths that carry the load.
func (c *Config) againstBuild() []path {
	both := func(id, name, layer string, open func(name, binary string, set settings) side, set settings) path {
		return path{
			id: id, name: name, unit: rate, connections: c.Connections, layer: layer,
			subject: open("this build", c.Gateway, set), baseline: open("the other build", c.Against, set),
			target: Target{AtLeast: slowest},
		}
	}
	return []path{
		both("new", "new orders", "", creatingSide, nil),
		both("dup-redis", "duplicates from Redis", layerRedis, replayingSide, withoutProcessTier()),
		both("dup-process", "duplicates in process", layerProcess, replayingSide, nil),
	}
}

func creatingSide(name, binary string, set settings) side {
	return side{name, func(ctx context.Context, s *stage) (*target, error) {
		d, err := s.deploy(ctx, binary, set, s.users, nil)
		if err != nil {
			return nil, err
		}
		return d.creating(s.users), nil
	}}
}

func replayingSide(name, binary string, set settings) side {
	return side{name, func(ctx context.Context, s *stage) (*target, error) {
		d, err := s.deploy(ctx, binary, set, s.users, nil)
		if err != nil {
			return nil, err
		}
		return d.replaying(ctx, s.users)
	}}
}

func openBare(ctx context.Context, s *stage) (*target, error) {
	return openBaseline(ctx, s, BaselineBare)
}

func openOneCommand(ctx context.Context, s *stage) (*target, error) {
	if err := keepReceipts(ctx, s.redis, s.users); err != nil {
		return nil, err
	}
	return openBaseline(ctx, s, BaselineRedis)
}

// fullSide has as many users as a table of that size would have, whether it is
// full or empty: who orders then hits every part of the indexes.
func fullSide(binary string, size, records int64) side {
	name := "gateway, full tables"
	if records == 0 {
		name = "gateway, empty tables"
	}
	return side{name, func(ctx context.Context, s *stage) (*target, error) {
		n := int(min(max(size/recordsPerUser, fewUsers), manyUsers))
		users, err := signUsers(s.secret, n, time.Now())
		if err != nil {
			return nil, err
		}
		var note string
		var fill func(context.Context, string) error
		if records > 0 {
			fill = func(ctx context.Context, database string) (err error) {
				note, err = s.fill(ctx, database, records, n)
				return err
			}
		}
		d, err := s.deploy(ctx, binary, nil, users, fill)
		if err != nil {
			return nil, err
		}
		t := d.creating(users)
		t.note = note
		return t, nil
	}}
}
