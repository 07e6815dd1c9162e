package cache

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order"
)

func BenchmarkAdmitFromTheProcess(b *testing.B) {
	r := open(b, testserver.Redis(b).Addr, nil)
	const keys = 1024
	attempts := make([]order.Attempt, keys)
	for i := range attempts {
		attempts[i] = attempt("alice", order.Key(fmt.Sprint("0b9df7c6-5c1a-4a44-8d51-", i)))
		adm := r.Admit(b.Context(), attempts[i])
		adm.Ticket.Finish(b.Context(), created())
	}
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if adm := r.Admit(b.Context(), attempts[i%keys]); adm.Layer != order.LayerProcess {
				b.Error("not remembered")
			}
		}
	})
}

func BenchmarkAdmitFromRedis(b *testing.B) {
	for _, callers := range []int{1, 64} {
		for name, pipelining := range map[string]bool{"pipelined": true, "plain": false} {
			b.Run(name+"/"+strconv.Itoa(callers), func(b *testing.B) {
				r := open(b, testserver.Redis(b).Addr, func(s *settings) { guardOnly(s); s.options.Pipelining = pipelining })
				a := attempt(b.Name(), "k")
				r.Admit(b.Context(), a).Ticket.Finish(b.Context(), created())
				b.ReportAllocs()
				b.ResetTimer()
				b.SetParallelism(max(1, callers/2))
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if adm := r.Admit(b.Context(), a); adm.Advice != order.Seen {
							b.Error("not seen")
						}
					}
				})
			})
		}
	}
}

// New orders as the guard sees them: a mark and a receipt each.
func BenchmarkAdmitAndFinish(b *testing.B) {
	for _, callers := range []int{1, 16, 256} {
		for _, ways := range []string{"plain", "pipelined", "streamed"} {
			b.Run(ways+"/"+strconv.Itoa(callers), func(b *testing.B) {
				r := open(b, testserver.Redis(b).Addr, func(s *settings) {
					guardOnly(s)
					s.options.Prefix = "bench" + rand.Text()
					s.options.Pipelining, s.streamed = ways != "plain", ways == "streamed"
				})
				var next, lost atomic.Int64
				var all sync.WaitGroup
				b.ReportAllocs()
				b.ResetTimer()
				for range callers {
					all.Go(func() {
						for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
							adm := r.Admit(b.Context(), attempt("alice", order.Key(strconv.FormatInt(n, 10))))
							if adm.Advice != order.Ours {
								lost.Add(1)
							}
							adm.Ticket.Finish(b.Context(), created())
						}
					})
				}
				all.Wait()
				if lost.Load() > 0 {
					b.Errorf("%d were not marked", lost.Load())
				}
			})
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	c := newCodec(macKey())
	a, r := attempt("alice", "0b9df7c6-5c1a-4a44-8d51-000000000000"), receipt()
	b.Run("mark", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.mark(&a, time.UnixMilli(1790000000000))
		}
	})
	b.Run("receipt", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.receipt(a.UserID, a.Key, &r, maxBody)
		}
	})
	b.Run("name", func(b *testing.B) {
		n := newNamer("oncegate", macKey())
		b.ReportAllocs()
		for b.Loop() {
			n.name(a.UserID, a.Key)
		}
	})
}

func BenchmarkDecodeReceipt(b *testing.B) {
	c := newCodec(macKey())
	r := receipt()
	record := c.receipt("alice", "0b9df7c6-5c1a-4a44-8d51-000000000000", &r, maxBody)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.decode(record, "alice", "0b9df7c6-5c1a-4a44-8d51-000000000000"); err != nil {
			b.Fatal(err)
		}
	}
}
