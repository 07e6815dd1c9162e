package configs

import "time"

// limit is one time limit and the name it is set by.
type limit struct {
	name string
	d    time.Duration
}

// times checks that the inner limit always ends before the outer one: whoever
// waits outside must still be there when the inside gives its answer.
func (v *validation) times(c *Config) {
	ascending := []limit{
		{"redis.op_timeout", c.Redis.OpTimeout},
		{"mysql.lock_wait_timeout", c.MySQL.LockWaitTimeout},
		{"mysql.read_timeout", c.MySQL.ReadTimeout},
		{"request_budget", c.RequestBudget},
		{"ttl.in_progress", c.TTL.InProgress},
		{"http.write_timeout", c.HTTP.WriteTimeout},
		{"mysql.wait_timeout", c.MySQL.WaitTimeout},
		{"shutdown_grace", c.ShutdownGrace},
	}
	for i := 1; i < len(ascending); i++ {
		v.shorter(ascending[i-1], ascending[i])
	}
	v.shorter(limit{"in_progress_grace", c.InProgressGrace}, limit{"ttl.in_progress", c.TTL.InProgress})
	v.shorter(limit{"ttl.in_progress", c.TTL.InProgress}, limit{"ttl.receipt", c.TTL.Receipt})
	v.shorter(limit{"mysql.connect_timeout", c.MySQL.ConnectTimeout}, limit{"request_budget", c.RequestBudget})
	v.shorter(limit{"max_wait + request_budget", c.MaxWait + c.RequestBudget}, limit{"http.write_timeout", c.HTTP.WriteTimeout})
	v.shorter(limit{"http.read_timeout + request_budget", c.HTTP.ReadTimeout + c.RequestBudget}, limit{"http.write_timeout", c.HTTP.WriteTimeout})
	v.shorter(limit{"http.drain_delay + http.write_timeout", c.HTTP.DrainDelay + c.HTTP.WriteTimeout}, limit{"shutdown_grace", c.ShutdownGrace})
	v.ranges(c)
}

func (v *validation) shorter(a, b limit) {
	v.check(a.d < b.d, "%s (%s) must be shorter than %s (%s)", a.name, FormatDuration(a.d), b.name, FormatDuration(b.d))
}

func (v *validation) ranges(c *Config) {
	for _, r := range []struct {
		limit
		lowest, highest time.Duration
	}{
		{limit{"redis.op_timeout", c.Redis.OpTimeout}, time.Millisecond, time.Second},
		{limit{"mysql.lock_wait_timeout", c.MySQL.LockWaitTimeout}, time.Second, 2 * time.Second},
		{limit{"mysql.connect_timeout", c.MySQL.ConnectTimeout}, time.Millisecond, time.Minute},
		{limit{"mysql.start_timeout", c.MySQL.StartTimeout}, time.Millisecond, time.Hour},
		{limit{"ttl.in_progress", c.TTL.InProgress}, time.Second, time.Hour},
		{limit{"ttl.receipt", c.TTL.Receipt}, time.Second, 3650 * day},
		{limit{"in_progress_grace", c.InProgressGrace}, time.Millisecond, time.Hour},
		{limit{"max_wait", c.MaxWait}, 0, time.Hour},
		{limit{"breaker.open_for", c.Breaker.OpenFor}, time.Millisecond, time.Hour},
		{limit{"cache.local_ttl", c.Cache.LocalTTL}, 0, day},
		{limit{"http.read_header_timeout", c.HTTP.ReadHeaderTimeout}, time.Millisecond, time.Minute},
		{limit{"http.read_timeout", c.HTTP.ReadTimeout}, time.Millisecond, time.Hour},
		{limit{"http.idle_timeout", c.HTTP.IdleTimeout}, time.Millisecond, day},
		{limit{"http.drain_delay", c.HTTP.DrainDelay}, 0, time.Hour},
		{limit{"auth.leeway", c.Auth.Leeway}, 0, 5 * time.Minute},
		{limit{"retention.compact_every", c.Retention.CompactEvery}, 0, 30 * day},
		{limit{"batches.async_lease", c.Batches.AsyncLease}, time.Second, day},
		{limit{"shutdown_grace", c.ShutdownGrace}, time.Second, day},
		{limit{"retention.responses", c.Retention.Responses}, day, 36500 * day},
	} {
		v.check(r.d >= r.lowest && r.d <= r.highest, "%s (%s) must be from %s to %s",
			r.name, FormatDuration(r.d), FormatDuration(r.lowest), FormatDuration(r.highest))
	}
	every := c.Retention.CompactEvery
	v.check(every <= 0 || every >= time.Second, "retention.compact_every (%s) must be 0 or at least 1s", FormatDuration(every))
	// InnoDB's innodb_lock_wait_timeout and wait_timeout count in seconds.
	for _, l := range []limit{
		{"mysql.lock_wait_timeout", c.MySQL.LockWaitTimeout},
		{"mysql.wait_timeout", c.MySQL.WaitTimeout},
	} {
		v.check(l.d%time.Second == 0, "%s (%s) must be whole seconds", l.name, FormatDuration(l.d))
	}
}
