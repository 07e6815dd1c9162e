//go:build unix

package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/oncegate/oncegate/loadtest/drive"
)

// settings of a gateway beside those that every one has, by their names in the
// configuration.
type settings map[string]string

// perOrder makes a gateway of the plain kind: a transaction for each order, a
// connection for each Redis command, nothing shared in the process. It gets as
// many transactions at once as the configuration allows, so that MySQL's own
// group commit works for it, and a pool that nobody waits for.
func perOrder(connections int) settings {
	return settings{
		"ledger.max_batch":   "1",
		"ledger.workers":     strconv.Itoa(perOrderWorkers),
		"redis.pipelining":   "false",
		"redis.pool_size":    strconv.Itoa(max(connections, 16)),
		"cache.process_tier": "false",
	}
}

// perOrderWorkers is the most that the configuration allows, and what served
// this side best.
const perOrderWorkers = 64

// common is what every gateway here has. The generous time for Redis is for a
// busy machine: a time-out would send a duplicate to MySQL, which is another path.
func (s *stage) common(database string) (settings, error) {
	dsn, err := s.dsn(database)
	if err != nil {
		return nil, err
	}
	return settings{
		"mysql.dsn":         dsn.FormatDSN(),
		"redis.addrs":       s.c.Redis,
		"redis.op_timeout":  "500ms",
		"cache.prefix":      database,
		"cache.mac_key":     s.macKey,
		"auth.hs256_secret": s.secret,
		"log.level":         "warn",
	}, nil
}

func (s *stage) migrate(ctx context.Context, binary, database string) error {
	set, err := s.common(database)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "migrate", "up")
	cmd.Env = environment(set)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s migrate up: %w\n%s", binary, err, out)
	}
	return nil
}

// deployment is a gateway that is up, with a database of its own.
type deployment struct {
	database    string
	addr, admin string
	closers     closers
}

// deploy starts a gateway. Fill, when there is one, is called with the name of
// its database before it starts.
func (s *stage) deploy(ctx context.Context, binary string, set settings, users []drive.Identity,
	fill func(ctx context.Context, database string) error,
) (_ *deployment, err error) {
	d := &deployment{}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.closers.close())
		}
	}()
	database, drop, err := s.database(ctx, binary, users)
	if err != nil {
		return nil, err
	}
	d.closers.add(drop)
	if fill != nil {
		if err := fill(ctx, database); err != nil {
			return nil, err
		}
	}
	d.database = database
	return d, s.launch(ctx, d, binary, set)
}

// launch starts a gateway on the deployment's database.
func (s *stage) launch(ctx context.Context, d *deployment, binary string, set settings) error {
	all, err := s.common(d.database)
	if err != nil {
		return err
	}
	maps.Copy(all, set)
	for name, addr := range map[string]*string{"http.listen": &d.addr, "admin.listen": &d.admin} {
		var release func() error
		if *addr, release, err = s.c.Reserve(); err != nil {
			return err
		}
		d.closers.add(release)
		all[name] = *addr
	}
	return d.serve(ctx, binary, all)
}

func (d *deployment) serve(ctx context.Context, binary string, set settings) error {
	dir, err := os.MkdirTemp("", "oncegate-bench-")
	if err != nil {
		return fmt.Errorf("a directory for the gateway: %w", err)
	}
	d.closers.add(func() error { return os.RemoveAll(dir) })
	set["data_dir"] = dir
	cmd := exec.Command(binary, "serve") //nolint:noctx // it is stopped in good order
	cmd.Env = environment(set)
	p, err := spawn(cmd)
	if err != nil {
		return err
	}
	d.closers.add(p.stop)
	return p.awaitReady(ctx, d.addr)
}

// prime makes each user's first order, which the duplicates are copies of.
func (d *deployment) prime(ctx context.Context, users []drive.Identity) error {
	const atOnce = 16
	p := newPoster(d.addr)
	errs := make([]error, atOnce)
	var wg sync.WaitGroup
	for i := range atOnce {
		wg.Go(func() {
			var who drive.Identity
			w := p.worker(ctx, func() (drive.Identity, string) { return who, knownKey(who) }, made)
			defer w.close()
			for u := i; u < len(users) && errs[i] == nil; u += atOnce {
				who = users[u]
				errs[i] = w.step(ctx)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("make the orders that are to be repeated: %w", err)
	}
	return nil
}

// layers reads which layers gave the replays so far.
func (d *deployment) layers(ctx context.Context) (Layers, error) {
	text, err := metricsText(ctx, d.admin)
	if err != nil {
		return nil, err
	}
	return parseLayers(text), nil
}

// creating is a target that makes orders.
func (d *deployment) creating(users []drive.Identity) *target {
	p := newPoster(d.addr)
	return &target{
		worker: func(ctx context.Context, _ int) (worker, error) { return p.worker(ctx, fresh(users), made), nil },
		stop:   d.closers.close,
		admin:  d.admin,
	}
}

// replaying is a target that is asked for orders it has made.
func (d *deployment) replaying(ctx context.Context, users []drive.Identity) (*target, error) {
	if err := d.prime(ctx, users); err != nil {
		return nil, errors.Join(err, d.closers.close())
	}
	p := newPoster(d.addr)
	return &target{
		worker: func(ctx context.Context, i int) (worker, error) { return p.worker(ctx, known(users, i), replayed), nil },
		layers: d.layers,
		stop:   d.closers.close,
		admin:  d.admin,
	}, nil
}
