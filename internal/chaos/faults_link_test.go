//go:build linux

package chaos

import (
	"context"
	"time"

	"github.com/oncegate/oncegate/internal/faultproxy"
)

// commitFaults are what can become of a COMMIT.
func commitFaults() []fault {
	answers := func(code uint16, state, message string) faultproxy.Action {
		return faultproxy.AnswerError{Code: code, State: state, Message: message}
	}
	return []fault{
		commitFault("COMMIT cut", faultproxy.CutBefore),
		commitFault("COMMIT answered by nobody", faultproxy.Swallow),
		commitFault("COMMIT answered by silence", faultproxy.SwallowSilently),
		commitFault("COMMIT delayed", faultproxy.DelayForward{For: 300 * time.Millisecond}),
		commitFault("COMMIT delivered after its sender gave up", faultproxy.DelayForward{For: 2500 * time.Millisecond}),
		commitFault("COMMIT answered with a deadlock", answers(1213, "40001", "Deadlock found when trying to get lock")),
		commitFault("COMMIT answered with a failed certification", answers(3101, "HY000", "Plugin instructed the server to rollback")),
		commitFault("COMMIT answered with an error", answers(1180, "HY000", "Got error 28 during COMMIT")),
		commitFault("COMMIT answered with a failed log", answers(1598, "HY000", "Binary logging not possible")),
	}
}

// commitFault does something to one COMMIT in two.
func commitFault(name string, action faultproxy.Action) fault {
	return fault{name, toDatabase, func(w *world, e event) func() {
		d := e.dice()
		return w.onQueries(e, func(q string) faultproxy.Action {
			if q == "COMMIT" && d.one(2) {
				return action
			}
			return faultproxy.Pass
		})
	}}
}

func (w *world) onQueries(e event, hook func(string) faultproxy.Action) (end func()) {
	sites := w.sitesOf(e)
	for _, s := range sites {
		s.sql.OnQuery(hook)
	}
	return func() {
		for _, s := range sites {
			s.sql.OnQuery(nil)
		}
	}
}

func databaseLinkFaults() []fault {
	return []fault{
		{"connection cut at the n-th packet", toDatabase, func(w *world, e event) func() {
			d := e.dice()
			return w.onQueries(e, func(string) faultproxy.Action {
				switch {
				case !d.one(12):
					return faultproxy.Pass
				case d.one(2):
					return faultproxy.CutBefore
				default:
					return faultproxy.Swallow
				}
			})
		}},
		{"statements resent", toDatabase, func(w *world, e event) func() {
			d := e.dice()
			return w.onQueries(e, func(string) faultproxy.Action {
				if d.one(3) {
					return faultproxy.Resend{Last: d.one(2)}
				}
				return faultproxy.Pass
			})
		}},
		{"statements answered with errors", toDatabase, func(w *world, e event) func() {
			d := e.dice()
			errors := []faultproxy.AnswerError{
				{Code: 1205, Message: "Lock wait timeout exceeded"},
				{Code: 1213, State: "40001", Message: "Deadlock found when trying to get lock"},
				{Code: 1020, Message: "Record has changed since last read"},
				{Code: 1317, State: "70100", Message: "Query execution was interrupted"},
				{Code: 1053, State: "08S01", Message: "Server shutdown in progress"},
				{Code: 1290, Message: "The server is running with the --read-only option"},
				{Code: 1114, Message: "The table is full"},
			}
			return w.onQueries(e, func(string) faultproxy.Action {
				if d.one(8) {
					return errors[d.pick(len(errors))]
				}
				return faultproxy.Pass
			})
		}},
		{"database link slow", toDatabase, func(w *world, e event) func() {
			return w.onLinks(e, (*site).database, func(p *faultproxy.Proxy) { p.Delay(time.Duration(20+e.random%100) * time.Millisecond) })
		}},
		{"database link black-holed", toDatabase, func(w *world, e event) func() {
			return w.onLinks(e, (*site).database, (*faultproxy.Proxy).BlackHole)
		}},
		{"database link refused", toDatabase, func(w *world, e event) func() {
			return w.onLinks(e, (*site).database, (*faultproxy.Proxy).Refuse)
		}},
		{"database link cut over and over", toDatabase, func(w *world, e event) func() {
			return repeatedly(150*time.Millisecond, func(context.Context) {
				for _, s := range w.sitesOf(e) {
					s.sql.Cut()
				}
			})
		}},
	}
}

func (s *site) database() *faultproxy.Proxy { return s.sql.Proxy }
func (s *site) filter() *faultproxy.Proxy   { return s.redis.Proxy }

func (w *world) onLinks(e event, link func(*site) *faultproxy.Proxy, do func(*faultproxy.Proxy)) (end func()) {
	sites := w.sitesOf(e)
	for _, s := range sites {
		do(link(s))
	}
	return func() {
		for _, s := range sites {
			link(s).Pass()
		}
	}
}

func redisLinkFaults() []fault {
	all := []fault{
		{"redis link slow", toRedis, func(w *world, e event) func() {
			return w.onLinks(e, (*site).filter, func(p *faultproxy.Proxy) { p.Delay(time.Duration(20+e.random%80) * time.Millisecond) })
		}},
		{"redis link black-holed", toRedis, func(w *world, e event) func() {
			return w.onLinks(e, (*site).filter, (*faultproxy.Proxy).BlackHole)
		}},
		{"redis link refused", toRedis, func(w *world, e event) func() {
			return w.onLinks(e, (*site).filter, (*faultproxy.Proxy).Refuse)
		}},
	}
	for _, c := range []struct {
		name   string
		action faultproxy.Action
	}{
		{"redis replies lost", faultproxy.Swallow},
		{"redis replies silent", faultproxy.SwallowSilently},
		{"redis commands late", faultproxy.DelayForward{For: 250 * time.Millisecond}},
		{"redis READONLY", faultproxy.AnswerError{Message: "READONLY You can't write against a read only replica."}},
		{"redis LOADING", faultproxy.AnswerError{Message: "LOADING Redis is loading the dataset in memory"}},
		{"redis CLUSTERDOWN", faultproxy.AnswerError{Message: "CLUSTERDOWN The cluster is down"}},
		{"redis NOAUTH", faultproxy.AnswerError{Message: "NOAUTH Authentication required."}},
	} {
		all = append(all, fault{c.name, toRedis, func(w *world, e event) func() {
			d := e.dice()
			sites := w.sitesOf(e)
			for _, s := range sites {
				s.redis.OnCommand(func(faultproxy.Command) faultproxy.Action {
					if d.one(2) {
						return c.action
					}
					return faultproxy.Pass
				})
			}
			return func() {
				for _, s := range sites {
					s.redis.OnCommand(nil)
				}
			}
		}})
	}
	return all
}
