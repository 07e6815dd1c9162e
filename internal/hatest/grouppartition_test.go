//go:build linux && ha

package hatest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
)

// Packets between the primary and the other members are lost, both ways or one way,
// and nobody is told; the gateways reach all of them. The old primary takes
// connections and statements, and says that it takes writes, for as long as it
// lasts; but it cannot commit. Then it is made the primary again, as an operator
// does who takes servers out of service one by one.
func TestGroupReplicationLosesPackets(t *testing.T) { //nolint:paralleltest // a run has the machine to itself
	apart := testserver.NewNetwork(t, 2)
	group := startGroupAcross(t, apart)
	first, others := group[0], group[1:]
	first.createShop()
	gateways := startGateways(t, gatewayCount, settings(shopDSN(group...), map[string]string{"REDIS__ADDRS": testserver.Redis(t).Addr}))
	c := send(t, gateways...)
	c.awaitMore(60)

	l := apart.Links[toMembers]
	for _, loss := range []struct {
		name string
		lose func() (mend func())
	}{
		{"between the primary and the others", l.Silence},
		{"from the primary", l.Deafen},
		{"to the primary", l.Mute},
	} {
		parted := time.Now()
		mend := loss.lose()
		elected := awaitElected(t, others)
		took := time.Since(parted)
		c.awaitMore(40)
		served := time.Since(parted)
		first.awaitText("SELECT @@GLOBAL.super_read_only", "0")
		mend()
		first.rejoin()
		c.awaitMore(20)
		elected.exec("SELECT group_replication_set_as_primary('" + first.uuid() + "')")
		awaitElected(t, group[:1])
		c.awaitMore(40)
		t.Logf("packets %s are lost: another is elected after %v, and has 40 orders after %v",
			loss.name, took.Round(10*time.Millisecond), served.Round(10*time.Millisecond))
	}
	changes := serverChanges(t, gateways)

	j := c.judge(c.finish(), shopDSN(first))
	t.Logf("MySQL %s: the gateways saw %v changes of server", first.Version, changes)
	c.requireClean(j)
	audited(t, shopDSN(first))
	requireSameOrders(t, group)
}

// uuid is the member's name in the group.
func (m *member) uuid() string {
	m.t.Helper()
	uuid, err := m.text(context.Background(), "SELECT @@server_uuid")
	require.NoError(m.t, err)
	return uuid
}

// rejoin brings a member that gave up back into its group, as its operator does.
func (m *member) rejoin() {
	m.t.Helper()
	await(m.t, "the member knows that it is out", func(ctx context.Context) error {
		state, err := m.text(ctx, "SELECT member_state FROM performance_schema.replication_group_members WHERE member_id = @@server_uuid")
		if err == nil && state != "ERROR" {
			err = errors.New("it is " + state)
		}
		return err
	})
	m.exec("STOP GROUP_REPLICATION", "START GROUP_REPLICATION")
	m.awaitText(online, "3")
}

// requireSameOrders waits until all members have the same in every table.
func requireSameOrders(t *testing.T, group []*member) {
	t.Helper()
	await(t, "the members agree", func(ctx context.Context) error {
		want, err := group[0].checksums(ctx)
		if err != nil {
			return err
		}
		for _, m := range group[1:] {
			if got, err := m.checksums(ctx); err != nil {
				return err
			} else if !maps.Equal(got, want) {
				return fmt.Errorf("one has %v, another %v", want, got)
			}
		}
		return nil
	})
}

// checksums are those of the gateway's tables, by their names.
func (m *member) checksums(ctx context.Context) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	rows, err := m.db.QueryContext(ctx, "CHECKSUM TABLE shop.orders, shop.idempotency_records, shop.users, shop.order_events")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // only read
	sums := map[string]string{}
	for rows.Next() {
		var table string
		var sum sql.NullString
		if err := rows.Scan(&table, &sum); err != nil {
			return nil, err
		}
		if !sum.Valid {
			return nil, fmt.Errorf("%s has no checksum", table)
		}
		sums[table] = sum.String
	}
	return sums, rows.Err()
}
