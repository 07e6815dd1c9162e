package main

import (
	"database/sql"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
)

// The record of an order is damaged, and nobody remembers its answer: whoever asks
// hears that it cannot be told, no order is made, and neither Redis nor a gateway
// keeps anything of it. When the record is what it was, so is the answer.
func TestADamagedRecordIsNeitherAnsweredNorKept(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		client := testserver.StartRedis(t).Client(t)
		db, err := sql.Open("mysql", dsn)
		require.NoError(t, err)
		defer func() { require.NoError(t, db.Close()) }()
		execute := func(statement string) {
			_, err := db.ExecContext(t.Context(), statement)
			require.NoError(t, err, statement)
		}
		execute("CREATE TABLE kept AS SELECT * FROM idempotency_records LIMIT 0") //nolint:unqueryvet // a row is put back whole
		c := deployed(t, dsn, client.Options().Addr)
		first, other := start(t, c), start(t, c)
		for damage, set := range map[string]string{
			"status-0": "response_status = 0", "status-999": "response_status = 999", "empty-answer": "response_body = ''",
			"a-header-of-its-own": "response_type = 'a\r\nSet-Cookie: x'", "state-0": "status = 0", "operation": "operation = 'orders.create/2'",
		} {
			customer, neighbour := newCustomer(t, c, damage), newCustomer(t, c, "bob")
			made := customer.post(first, "k", potsticker)
			require.Equal(t, http.StatusCreated, made.status, made.body)
			forgotten(t, client)
			ofTheKey := " WHERE user_id = '" + damage + "'"
			execute("INSERT INTO kept SELECT * FROM idempotency_records" + ofTheKey) //nolint:unqueryvet // a row is put back whole
			execute("UPDATE idempotency_records SET " + set + ofTheKey)

			var said answer
			require.Eventually(t, func() bool { // its mark is believed for a moment, each time
				said = customer.post(other, "k", potsticker)
				return said.status != http.StatusConflict
			}, 30*time.Second, 50*time.Millisecond)
			require.Equal(t, http.StatusInternalServerError, said.status, "%s: %s", damage, said.body)
			require.Contains(t, said.body, `"outcome":"unknown"`, damage)
			require.NotContains(t, said.body, "unreadable", damage)
			require.Empty(t, said.header.Get("Set-Cookie"), damage)
			require.False(t, said.replayed(), damage)
			require.Equal(t, http.StatusInternalServerError, customer.get(other, "/api/requests/k").status, damage)
			requireNoReceipts(t, client, damage)
			require.Equal(t, http.StatusCreated, neighbour.post(other, damage, potsticker).status)
			require.Equal(t, 1, orders(t, dsn, damage))

			execute("DELETE FROM idempotency_records" + ofTheKey)
			execute("INSERT INTO idempotency_records SELECT * FROM kept" + ofTheKey) //nolint:unqueryvet // a row is put back whole
			var last answer
			require.Eventually(t, func() bool {
				last = customer.post(other, "k", potsticker)
				return last.status != http.StatusConflict
			}, 30*time.Second, 50*time.Millisecond)
			require.Equal(t, http.StatusCreated, last.status, last.body)
			require.Equal(t, made.body, last.body, damage)
			require.Equal(t, made.header.Get("Location"), last.header.Get("Location"), damage)
			require.True(t, last.replayed(), damage)
			require.Equal(t, 1, orders(t, dsn, damage))
		}
	})
}

// forgotten empties Redis.
func forgotten(t *testing.T, client *redis.Client) {
	t.Helper()
	require.NoError(t, client.FlushAll(t.Context()).Err())
}

// requireNoReceipts checks that Redis has marks only.
func requireNoReceipts(t *testing.T, client *redis.Client, why string) {
	t.Helper()
	for _, name := range names(t, client) {
		entry, err := client.Get(t.Context(), name).Result()
		if errors.Is(err, redis.Nil) {
			continue // a mark that has expired meanwhile
		}
		require.NoError(t, err)
		require.Equal(t, "P", entry[1:2], why)
	}
}
