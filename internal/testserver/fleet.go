//go:build unix

package testserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/oncegate/oncegate/internal/loopback"
)

// locateTimeout bounds an installation; it counts in minutes.
const locateTimeout = 15 * time.Minute

// fleet is what one process knows of its servers.
type fleet struct {
	launcher launcher
	located  map[string]func() (installation, error)

	sharedMySQL   func() (*SQLServer, error)
	sharedMariaDB func() (*SQLServer, error)
	sharedRedis   func() (*RedisServer, error)

	mu     sync.Mutex
	shared []instance
}

func newFleet() *fleet {
	f := &fleet{located: map[string]func() (installation, error){}}
	for _, e := range []engine{mysqlEngine(), mariaDBEngine(), redisEngine()} {
		f.located[e.id] = sync.OnceValues(func() (installation, error) {
			ctx, cancel := context.WithTimeout(context.Background(), locateTimeout)
			defer cancel()
			return locate(ctx, e)
		})
	}
	f.sharedMySQL = sync.OnceValues(func() (*SQLServer, error) { return f.shareSQL(mysqlEngine()) })
	f.sharedMariaDB = sync.OnceValues(func() (*SQLServer, error) { return f.shareSQL(mariaDBEngine()) })
	f.sharedRedis = sync.OnceValues(f.shareRedis)
	return f
}

// equip changes a server before it is started the first time.
type equip func(context.Context, *process) error

// launch prepares a server of the engine; it is not started yet.
func (f *fleet) launch(ctx context.Context, e engine, extra []string, more ...equip) (instance, string, error) {
	found, err := f.located[e.id]()
	if err != nil {
		return nil, "", err
	}
	port, err := loopback.Reserve()
	if err != nil {
		return nil, "", err
	}
	if found.image != "" {
		if len(more) > 0 {
			return nil, "", errors.Join(fmt.Errorf("%s as a process: %w", e.name, ErrMissing), port.Release())
		}
		return newContainer(&f.launcher, e, port, extra), port.Addr(), nil
	}
	p, err := newProcess(ctx, &f.launcher, e, found, port, extra)
	if err != nil {
		return nil, "", errors.Join(err, port.Release())
	}
	for _, m := range more {
		if err := m(ctx, p); err != nil {
			return nil, "", discardAfter(err, p)
		}
	}
	return p, p.addr(), nil
}

func (f *fleet) startSQL(ctx context.Context, e engine, extra []string, more ...equip) (*SQLServer, error) {
	i, addr, err := f.launch(ctx, e, extra, more...)
	if err != nil {
		return nil, err
	}
	s, err := newSQLServer(loopbackDSN(addr))
	if err != nil {
		return nil, discardAfter(err, i)
	}
	s.instance = i
	if err := startReady(ctx, i, s.ping); err != nil {
		return nil, discardAfter(fmt.Errorf("%s: %w", e.name, err), i)
	}
	return s, nil
}

func (f *fleet) startRedis(ctx context.Context, extra []string, more ...equip) (*RedisServer, error) {
	i, addr, err := f.launch(ctx, redisEngine(), extra, more...)
	if err != nil {
		return nil, err
	}
	r := newRedisServer(addr)
	r.instance = i
	if err := startReady(ctx, i, r.ping); err != nil {
		return nil, discardAfter(fmt.Errorf("redis: %w", err), i)
	}
	return r, nil
}

// shareSQL uses the server that the environment names, or starts one.
func (f *fleet) shareSQL(e engine) (*SQLServer, error) {
	ctx := context.Background()
	dsn := os.Getenv(e.addressEnv)
	if dsn == "" {
		s, err := f.startSQL(ctx, e, nil)
		if err == nil {
			f.share(s.instance)
		}
		return s, err
	}
	s, err := newSQLServer(dsn)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.addressEnv, err)
	}
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	if err := s.askVersion(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", e.addressEnv, err)
	}
	if isMariaDB := strings.Contains(s.Version, "MariaDB"); isMariaDB != (e.id == "mariadb") {
		return nil, fmt.Errorf("%s names a server of version %s, which is not %s", e.addressEnv, s.Version, e.name)
	}
	return s, nil
}

// shareRedis uses the server that the environment names, or starts one.
func (f *fleet) shareRedis() (*RedisServer, error) {
	ctx := context.Background()
	env := redisEngine().addressEnv
	addr := os.Getenv(env)
	if addr == "" {
		r, err := f.startRedis(ctx, nil)
		if err == nil {
			f.share(r.instance)
		}
		return r, err
	}
	r := newRedisServer(addr)
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	if err := r.askVersion(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", env, err)
	}
	return r, nil
}

func (f *fleet) share(i instance) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shared = append(f.shared, i)
}

// stop ends the shared servers; private ones have ended with their tests.
func (f *fleet) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), operationTimeout)
	defer cancel()
	f.mu.Lock()
	defer f.mu.Unlock()
	var err error
	for _, i := range f.shared {
		err = errors.Join(err, i.discard(ctx))
	}
	f.shared = nil
	f.launcher.stop()
	return err
}
