package main

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/oncegate/oncegate/cache"
	"github.com/oncegate/oncegate/configs"
)

// openFilter opens Redis and the filter over it. Redis may be away: then the
// database answers everything.
func (a *App) openFilter(ctx context.Context, cfg *configs.Config, macKey []byte, registry prometheus.Registerer) (*cache.Filter, error) {
	client, err := a.openRedis(ctx, cfg)
	if err != nil {
		return nil, err
	}
	o := filterOptions(cfg)
	o.Client, o.MACKey, o.Logger, o.Registerer, o.Now = client, macKey, a.log, registry, time.Now
	o.Tuning = a.settings.cacheTuning
	o.BreakerMoved, o.Tracer = a.breakerMoved, a.tracer
	f, err := cache.New(o)
	if err != nil {
		return nil, err
	}
	a.background("watch of Redis", f.Watch)
	return f, nil
}

// breakerMoved hands a move on. It does not wait: the breaker calls it under its
// own lock.
func (a *App) breakerMoved(from, to, reason string) {
	a.insight.BreakerMoved(from, to, reason)
	select {
	case a.moved <- struct{}{}:
	default: // it is known that one did
	}
}

func (a *App) openRedis(ctx context.Context, cfg *configs.Config) (redis.UniversalClient, error) {
	if cfg.EmbeddedRedis() {
		embedded, err := cache.OpenEmbedded(cfg.Redis.OpTimeout)
		if err != nil {
			return nil, err
		}
		a.keep("embedded Redis", func(context.Context) error { return embedded.Close() })
		if !cfg.EmbeddedDatabase() {
			a.log.WarnContext(ctx, "Redis runs within this process and is shared with no other gateway: set redis.addrs")
		}
		return embedded.Client, nil
	}
	client, err := cache.OpenClient(redisOptions(cfg))
	if err != nil {
		return nil, err
	}
	a.keep("connections to Redis", func(context.Context) error { return client.Close() })
	return client, nil
}

func redisOptions(c *configs.Config) cache.ClientOptions {
	o := cache.ClientOptions{
		Addrs:            c.Redis.Addrs,
		MasterName:       c.Redis.MasterName,
		Cluster:          c.Redis.Cluster,
		Username:         c.Redis.Username,
		Password:         c.Redis.Password.Reveal(),
		SentinelUsername: c.Redis.SentinelUsername,
		SentinelPassword: c.Redis.SentinelPassword.Reveal(),
		DB:               c.Redis.DB,
		OpTimeout:        c.Redis.OpTimeout,
		PoolSize:         c.Redis.PoolSize,
	}
	if c.Redis.TLS {
		o.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return o
}

func filterOptions(c *configs.Config) cache.Options {
	return cache.Options{
		Pipelining:         c.Redis.Pipelining,
		Prefix:             c.Cache.Prefix,
		MaxBody:            int(c.Cache.MaxBody),
		DisableProcessTier: !c.Cache.ProcessTier,
		LocalEntries:       c.Cache.LocalEntries,
		LocalBytes:         int(c.Cache.LocalBytes),
	}
}

func cacheTuning(c *configs.Config) cache.Tuning {
	return cache.Tuning{
		OpTimeout:       c.Redis.OpTimeout,
		InProgressTTL:   c.TTL.InProgress,
		ReceiptTTL:      c.TTL.Receipt,
		LocalTTL:        c.Cache.LocalTTL,
		BreakerFailures: c.Breaker.Failures,
		BreakerOpenFor:  c.Breaker.OpenFor,
	}
}
