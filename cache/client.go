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
	TLS                                *tls.Config // for Sentinels too
	// OpTimeout bounds reading, writing and waiting for a connection. Required.
	OpTimeout time.Duration
	PoolSize  int // connections per node; zero: the client's default
}

// dialFactor is how many operations' time setting up a connection may take. It
// needs several round trips (TCP, TLS, through Sentinels), and nobody waits for
// it longer than for an operation: it goes on without its caller, for the next.
const dialFactor = 10

// clusterMapAge is how old the map of a Cluster's slots may become. A node that
// is dead tells nobody where its slots went, and the users of those slots bypass
// the filter until the map is read again; the client's default is a minute.
const clusterMapAge = 2 * time.Second

// OpenClient makes a client whose every call ends within the operation
// time-out, whatever Redis does. Commands are never sent twice: a resent
// SET NX would tell the owner of a key that somebody else owns it.
func OpenClient(o ClientOptions) (redis.UniversalClient, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	u := &redis.UniversalOptions{
		Addrs: o.Addrs, MasterName: o.MasterName, IsClusterMode: o.Cluster, DB: o.DB,
		Username: o.Username, Password: o.Password,
		SentinelUsername: o.SentinelUsername, SentinelPassword: o.SentinelPassword,
		TLSConfig: o.TLS, PoolSize: o.PoolSize,
		MaxRetries: -1, DialerRetries: 1,
		ContextTimeoutEnabled: true,
		DialTimeout:           dialFactor * o.OpTimeout,
		ReadTimeout:           o.OpTimeout, WriteTimeout: o.OpTimeout, PoolTimeout: o.OpTimeout,
		DisableIdentity:          true, // no commands but ours, on no connection
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	resend(u)
	if !o.Cluster {
		return redis.NewUniversalClient(u), nil
	}
	u.MaxRedirects = 3 // MOVED and ASK: the command was not carried out where it was sent
	c := u.Cluster()
	c.ClusterStateReloadInterval = clusterMapAge
	return redis.NewClusterClient(c), nil
}

func (o *ClientOptions) validate() error {
	switch {
	case len(o.Addrs) == 0:
		return errors.New("cache: no Redis address")
	case o.OpTimeout <= 0:
		return errors.New("cache: the operation time-out must be above zero")
	case o.Cluster && o.MasterName != "":
		return errors.New("cache: a Redis is either behind Sentinels or a Cluster")
	case o.Cluster && o.DB != 0:
		return errors.New("cache: a Redis Cluster has only database 0")
	case len(o.Addrs) > 1 && !o.Cluster && o.MasterName == "":
		return errors.New("cache: several Redis addresses are those of a Cluster or of Sentinels")
	}
	return nil
}
