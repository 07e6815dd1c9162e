package consumer

import (
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// RedisOptions are those of Redis Streams. What is not set has the default of
// [StreamOptions].
type RedisOptions struct {
	// Client says how to connect: to a single server, Sentinels or a Cluster.
	// Required.
	Client                             *redis.UniversalOptions
	Instance                           string
	ClaimAfter, ClaimInterval, Timeout time.Duration
}

// openRedis gives the subscriber and the publisher a client each, for each
// closes its own, and a blocked read must not keep a publication waiting.
func openRedis(o BrokerOptions) (message.Subscriber, message.Publisher, error) {
	if o.Redis.Client == nil {
		return nil, nil, errors.New("consumer: redis: how to connect is required")
	}
	settings := *o.Redis.Client
	settings.ContextTimeoutEnabled = true // all commands have deadlines
	settings.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	if settings.PoolSize == 0 {
		// Each worker holds a connection while it waits for entries; one more asks
		// for the backlog. They are opened when they are needed.
		settings.PoolSize = maxWorkers + 1
	}
	client := redis.NewUniversalClient(&settings)
	subscriber, err := NewStreamSubscriber(StreamOptions{
		Client: client, Group: o.Group, Instance: o.Redis.Instance,
		ClaimAfter: o.Redis.ClaimAfter, ClaimInterval: o.Redis.ClaimInterval, Timeout: o.Redis.Timeout,
		Logger: o.Logger,
	})
	if err != nil {
		return nil, nil, errors.Join(err, client.Close())
	}
	// No bound on the length: a parked message is kept until somebody has dealt
	// with it.
	publisher, err := redisstream.NewPublisher(redisstream.PublisherConfig{Client: redis.NewUniversalClient(&settings)}, adapted(o.Logger))
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("consumer: redis: %w", err), subscriber.Close())
	}
	return subscriber, publisher, nil
}
