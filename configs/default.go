package configs

import (
	"net/http"
	"time"
)

// Default returns the defaults: a gateway that needs nothing but a directory.
// Its time limits ascend as Validate wants them.
func Default() Config {
	return Config{
		DataDir: "./data",
		HTTP: HTTP{
			Listen:            "127.0.0.1:8080",
			ReadHeaderTimeout: 5 * time.Second,
			ReadTimeout:       10 * time.Second,
			WriteTimeout:      18 * time.Second,
			IdleTimeout:       time.Minute,
			MaxOrderBody:      64 << 10,
			MaxBatchBody:      512 << 10,
			MaxBatchRows:      maxBatchRows,
			MaxInFlight:       10_000,
			ProblemBase:       "urn:oncegate:problem:",
		},
		Admin: Admin{Listen: "127.0.0.1:9090", AllowLoopback: true},
		Auth: Auth{
			Audience:   "oncegate",
			Issuer:     "oncegate",
			Leeway:     30 * time.Second,
			TokenCache: 10_000,
		},
		MySQL: MySQL{
			ReadConns:       16,
			ConnectTimeout:  2 * time.Second,
			StartTimeout:    30 * time.Second,
			LockWaitTimeout: time.Second,
			ReadTimeout:     3 * time.Second,
			WaitTimeout:     20 * time.Second,
		},
		Redis: Redis{OpTimeout: 50 * time.Millisecond, Pipelining: true},
		Cache: Cache{
			Prefix:       "oncegate",
			MaxBody:      16 << 10,
			ProcessTier:  true,
			LocalEntries: 50_000,
			LocalBytes:   64 << 20,
			LocalTTL:     time.Minute,
		},
		Breaker: Breaker{Failures: 5, OpenFor: 2 * time.Second},
		TTL:     TTL{InProgress: 10 * time.Second, Receipt: day},
		Ledger:  Ledger{Workers: 2, MaxBatch: 128, MaxRows: 512, Queue: 1024},
		Idempotency: Idempotency{
			Required:           true,
			ReusedStatus:       http.StatusConflict,
			RememberRejections: true,
		},
		Limits:    Limits{Burst: 20},
		Users:     Users{ProvisionBalance: ProvisionAuto},
		Retention: Retention{Responses: 30 * day, CompactEvery: time.Hour},
		Batches:   Batches{AsyncWorkers: 1, AsyncLease: 30 * time.Second},
		Messages: Messages{
			Topic: "payments", ParkedTopic: "payments.parked", Group: "oncegate", Name: "messages",
			Workers: 4, MaxDeliveries: 10,
		},
		Log:             Log{Level: "info", Format: "auto"},
		Tracing:         Tracing{Sample: 1},
		InProgressGrace: 2 * time.Second,
		RequestBudget:   6 * time.Second,
		MaxWait:         10 * time.Second,
		ShutdownGrace:   25 * time.Second,
	}
}
