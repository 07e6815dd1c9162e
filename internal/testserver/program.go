//go:build unix

package testserver

import "context"

// LaunchMySQL starts a private MySQL for a program that is no test. The
// arguments are added to its command line. It must be given back with stop,
// which kills it and removes what it left; it does not outlive the process
// anyway. Freezing and restarting it is for tests alone.
func LaunchMySQL(ctx context.Context, args ...string) (s *SQLServer, stop func() error, err error) {
	f := newFleet()
	s, err = f.startSQL(ctx, mysqlEngine(), args)
	if err != nil {
		f.launcher.stop()
		return nil, nil, err
	}
	return s, f.giveBack(s.instance), nil
}

// LaunchRedis starts a private Redis for a program that is no test, as
// [LaunchMySQL] does.
func LaunchRedis(ctx context.Context, args ...string) (r *RedisServer, stop func() error, err error) {
	f := newFleet()
	r, err = f.startRedis(ctx, args)
	if err != nil {
		f.launcher.stop()
		return nil, nil, err
	}
	return r, f.giveBack(r.instance), nil
}

// giveBack ends a fleet of one server.
func (f *fleet) giveBack(i instance) (stop func() error) {
	return func() error {
		f.share(i)
		return f.stop()
	}
}
