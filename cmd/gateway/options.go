package main

import (
	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/order"
	"github.com/oncegate/oncegate/store"
)

// storeOptions are the settings of the database, without what an App adds.
func storeOptions(c *configs.Config) store.Options {
	dsn := c.MySQL.DSN.Reveal()
	if c.EmbeddedDatabase() {
		dsn = "sqlite:" + databaseFile(c)
	}
	return store.Options{
		DSN:              dsn,
		Workers:          c.Ledger.Workers,
		MaxBatch:         c.Ledger.MaxBatch,
		MaxRows:          c.Ledger.MaxRows,
		Queue:            c.Ledger.Queue,
		ForgetRejections: !c.Idempotency.RememberRejections,
		LockWaitTimeout:  c.MySQL.LockWaitTimeout,
		ReadTimeout:      c.MySQL.ReadTimeout,
		WaitTimeout:      c.MySQL.WaitTimeout,
		ConnectTimeout:   c.MySQL.ConnectTimeout,
		StartTimeout:     c.MySQL.StartTimeout,
		ReadConns:        c.MySQL.ReadConns,
	}
}

func decisionTuning(c *configs.Config) order.Tuning {
	return order.Tuning{
		Budget:          c.RequestBudget,
		InProgressGrace: c.InProgressGrace,
		MaxWait:         c.MaxWait,
		ConfirmReceipts: c.Cache.ConfirmReceipts,
		RefusalsKept:    c.Retention.Responses,
	}
}

func httpTuning(c *configs.Config) gateway.Tuning {
	return gateway.Tuning{
		KeyRequired:       c.Idempotency.Required,
		ReusedStatus:      c.Idempotency.ReusedStatus,
		MaxOrderBody:      int(c.HTTP.MaxOrderBody),
		MaxBatchBody:      int(c.HTTP.MaxBatchBody),
		MaxRows:           c.HTTP.MaxBatchRows,
		MaxInFlight:       c.HTTP.MaxInFlight,
		RatePerSecond:     c.Limits.Rate,
		RateBurst:         c.Limits.Burst,
		MaxWait:           c.MaxWait,
		ChangeBudget:      c.RequestBudget,
		ReadBudget:        c.MySQL.ReadTimeout,
		FastWindow:        c.TTL.Receipt,
		ResponseRetention: c.Retention.Responses,
	}
}
