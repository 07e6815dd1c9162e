//go:build unix

package bench

import (
	"context"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/oncegate/oncegate/loadtest/drive"
)

const baselinePrefix = "baseline:"

// oneCommand answers with what one GET of the receipt finds. The client is
// go-redis as it comes; only its pool is large enough that nobody waits for a
// connection.
func oneCommand(engine *gin.Engine, o BaselineOptions) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: o.Redis, PoolSize: o.Connections})
	engine.POST(ordersPath, func(c *gin.Context) {
		if _, err := c.GetRawData(); err != nil {
			c.Status(http.StatusBadRequest)
			return
		}
		receipt, err := client.Get(c.Request.Context(), baselinePrefix+c.GetHeader("Idempotency-Key")).Bytes()
		if err != nil {
			c.Status(http.StatusBadGateway)
			return
		}
		c.Data(http.StatusCreated, "application/json", receipt)
	})
	return client
}

// keepReceipts puts a receipt for each user where the baseline looks for it.
func keepReceipts(ctx context.Context, client *redis.Client, users []drive.Identity) error {
	pairs := make([]any, 0, 2*len(users))
	for _, u := range users {
		pairs = append(pairs, baselinePrefix+knownKey(u), orderAnswer)
	}
	if err := client.MSet(ctx, pairs...).Err(); err != nil {
		return fmt.Errorf("keep receipts for the baseline: %w", err)
	}
	return nil
}
