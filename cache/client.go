package cache

import (
	"crypto/tls"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// ClientOptions say which Redis to use.
type ClientOptions struct {
	// Addrs of the server, of the Sentinels (with MasterName) or of some nodes
	// of a Cluster (with Cluster).
	Addrs      []string
	MasterName string
	Cluster    bool

	Username, Password                 string
	SentinelUsername, SentinelPassword string
	DB                                 int
	TLS                                *tls.Config
	// OpTimeout bounds dialling, reading, writing and waiting for a connection.
	OpTimeout time.Duration
	PoolSize  int // connections per node; zero: the client's default
}

// OpenClient makes a client whose every call ends within the operation
// time-out, whatever Redis does. Commands are never sent twice: a resent
// SET NX would tell the owner of a key that somebody else owns it.
func OpenClient(o ClientOptions) (redis.UniversalClient, error) {
	switch {
	case len(o.Addrs) == 0:
		return nil, errors.New("cache: no Redis address")
	case o.Cluster && o.MasterName != "":
		return nil, errors.New("cache: a Redis is either behind Sentinels or a Cluster")
	case o.Cluster && o.DB != 0:
		return nil, errors.New("cache: a Redis Cluster has only database 0")
	}
	u := &redis.UniversalOptions{
		Addrs: o.Addrs, MasterName: o.MasterName, IsClusterMode: o.Cluster, DB: o.DB,
		Username: o.Username, Password: o.Password,
		SentinelUsername: o.SentinelUsername, SentinelPassword: o.SentinelPassword,
		TLSConfig: o.TLS, PoolSize: o.PoolSize,
		MaxRetries: -1, DialerRetries: 1,
		ContextTimeoutEnabled: true,
		DialTimeout:           o.OpTimeout, ReadTimeout: o.OpTimeout, WriteTimeout: o.OpTimeout, PoolTimeout: o.OpTimeout,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	switch {
	case o.Cluster:
		c := u.Cluster()
		c.MaxRedirects = 3 // MOVED and ASK: the command was not carried out where it was sent
		return redis.NewClusterClient(c), nil
	case o.MasterName != "":
		return redis.NewFailoverClient(u.Failover()), nil
	default:
		return redis.NewClient(u.Simple()), nil
	}
}
