//go:build unix

package consumer_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/consumer"
	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/order"
	"github.com/oncegate/oncegate/order/ordertest"
	"github.com/oncegate/oncegate/store"
)

// How a test tells the process that it is going to kill what to do.
const (
	victimRole  = "ONCEGATE_TEST_VICTIM"
	victimRedis = "ONCEGATE_TEST_VICTIM_REDIS"
	victimTopic = "ONCEGATE_TEST_VICTIM_TOPIC"
	victimDSN   = "ONCEGATE_TEST_VICTIM_DSN"

	beforeCommit = "before commit"
	afterCommit  = "after commit"
	inHand       = "in hand"
)

// beVictim consumes until the message is in hand at the named moment, says so,
// and waits to be killed.
func beVictim(role string) {
	ctx := context.Background()
	s, err := store.Open(ctx, store.Options{DSN: os.Getenv(victimDSN), Renderer: ordertest.PlainRenderer{}})
	must(err)
	subscriber, publisher, err := consumer.Open(consumer.BrokerOptions{
		Kind: consumer.Redis, Group: group, Logger: slog.New(slog.DiscardHandler),
		Redis: &consumer.RedisOptions{Client: &redis.UniversalOptions{Addrs: []string{os.Getenv(victimRedis)}}, Instance: "victim"},
	})
	must(err)
	topic := os.Getenv(victimTopic)
	c, err := consumer.New(consumer.Options{
		Subscriber: subscriber, Topic: topic, Name: group, Lifecycle: &stuck{Store: s, role: role}, Workers: 1,
		Parker: consumer.TopicParker{Publisher: publisher, Topic: topic + "-parked", Now: time.Now},
		Logger: slog.New(slog.DiscardHandler),
	})
	must(err)
	must(c.Run(ctx))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// stuck never returns from Apply.
type stuck struct {
	*store.Store
	role string
}

func (s *stuck) Apply(ctx context.Context, m order.PaymentMessage) (order.Transition, error) {
	if s.role == afterCommit {
		_, err := s.Store.Apply(ctx, m)
		must(err)
	}
	_, _ = fmt.Println(inHand) //nolint:forbidigo // the parent reads it
	select {}
}

func TestConsumerKilledWithAMessageInHand(t *testing.T) {
	t.Parallel()
	for _, role := range []string{beforeCommit, afterCommit} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, testserver.Redis(t))
			s.claimAfter = soon
			file := filepath.Join(t.TempDir(), "orders.db")
			ledger, id := openStore(t, "sqlite:"+file)
			s.publish("evt_1", body(id))

			victim := exec.CommandContext(t.Context(), os.Args[0])
			victim.Env = append(os.Environ(), victimRole+"="+role, victimRedis+"="+s.server.Addr, victimTopic+"="+s.topic, victimDSN+"=sqlite:"+file)
			victim.Stderr = os.Stderr
			out, err := victim.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, victim.Start())
			lines := bufio.NewScanner(out)
			require.True(t, lines.Scan(), "the victim says where it is")
			require.Equal(t, inHand, lines.Text())
			require.NoError(t, victim.Process.Kill())
			require.Error(t, victim.Wait())
			require.False(t, s.settled(), "it was not acknowledged")
			if role == beforeCommit {
				require.Zero(t, effects(t, file))
			} else {
				require.Equal(t, 1, effects(t, file))
			}

			o := s.options(ledger, "heir")
			s.consume(o)
			s.eventually("the heir acknowledges it", s.settled)
			require.Equal(t, 1, effects(t, file))
			require.Empty(t, s.parked())
			paid, err := ledger.Order(t.Context(), "ann", id)
			require.NoError(t, err)
			require.Equal(t, order.Paid, paid.Status)
		})
	}
}

// openStore opens a database with one order.
func openStore(t *testing.T, dsn string) (*store.Store, order.ID) {
	t.Helper()
	o := store.Options{DSN: dsn, Renderer: ordertest.PlainRenderer{}}
	require.NoError(t, store.Migrate(t.Context(), o))
	s, err := store.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	require.NoError(t, s.SetBalance(t.Context(), "ann", 100_00))
	c, err := order.NewCommand(order.CreateOrder, "ann", "k", []order.Line{{SKU: "a", Quantity: 1, Amount: 19_90}})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err = s.Decide(ctx, c)
	require.NoError(t, err)
	orders, err := s.Orders(t.Context(), "ann", order.ID{}, 10)
	require.NoError(t, err)
	require.Len(t, orders, 1)
	return s, orders[0].ID
}

// effects counts the changes of state that payments made, in the database.
func effects(t *testing.T, file string) (n int) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	require.NoError(t, db.QueryRowContext(t.Context(),
		"SELECT COUNT(*) FROM order_events WHERE event = 'payment.succeeded' AND effect = 'applied'").Scan(&n))
	return n
}
