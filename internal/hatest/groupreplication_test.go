//go:build linux && ha

package hatest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
)

// groupName is any UUID: that the members meet is up to their ports.
const groupName = "8f4b6c2e-1d0a-4d5b-9c3e-0a7b6c5d4e3f"

// startGroup starts three MySQL servers with Group Replication, the first of
// which is the single primary, and waits until all are online.
func startGroup(t *testing.T) []*member {
	t.Helper()
	return startGroupAcross(t, nil)
}

// The links of a network with the first member of a group: to the other members,
// and to everybody else.
const (
	toMembers = iota
	toClients
)

// startGroupAcross starts a group as [startGroup] does, with the first member in a
// network of its own, unless that is nil. When that is parted from the others it
// waits for them for ever, as MySQL does if nobody says otherwise; without a
// network of its own it gives up after five seconds.
func startGroupAcross(t *testing.T, apart *testserver.Network) []*member {
	t.Helper()
	hosts, patience := []string{"127.0.0.1", "127.0.0.1", "127.0.0.1"}, 5
	if apart != nil {
		l := apart.Links[toMembers]
		hosts, patience = []string{l.Far, l.Near, l.Near}, 0
	}
	var locals []string
	for _, host := range hosts {
		locals = append(locals, net.JoinHostPort(host, strconv.Itoa(reserve(t).Number())))
	}
	var group []*member
	for i, local := range locals {
		args := []string{
			fmt.Sprintf("--server-id=%d", i+1), "--gtid-mode=ON", "--enforce-gtid-consistency=ON",
			"--performance-schema=ON", "--innodb-buffer-pool-size=64M", "--report-host=" + hosts[i],
			"--plugin-load-add=group_replication.so",
			"--loose-group-replication-group-name=" + groupName,
			"--loose-group-replication-start-on-boot=OFF",
			"--loose-group-replication-local-address=" + local,
			"--loose-group-replication-group-seeds=" + strings.Join(locals, ","),
			"--loose-group-replication-ip-allowlist=127.0.0.0/8,198.18.0.0/15",
			"--loose-group-replication-single-primary-mode=ON",
			"--loose-group-replication-consistency=BEFORE_ON_PRIMARY_FAILOVER",
			"--loose-group-replication-exit-state-action=READ_ONLY",
			fmt.Sprintf("--loose-group-replication-unreachable-majority-timeout=%d", patience),
			"--loose-group-replication-member-expel-timeout=0",
			"--loose-group-replication-autorejoin-tries=10",
		}
		var m *member
		switch {
		case apart == nil:
			m = newMember(t, testserver.StartMySQLNode(t, args...))
		case i == 0:
			m = newMember(t, testserver.StartMySQLNodeAt(t, apart.Links[toClients], args...))
		default:
			m = newMember(t, testserver.StartMySQLNode(t, append(args, "--bind-address=127.0.0.1,"+hosts[i])...))
		}
		plugin, err := m.text(t.Context(), "SELECT COUNT(*) FROM information_schema.plugins WHERE plugin_name = 'group_replication'")
		require.NoError(t, err)
		if plugin != "1" {
			testserver.Demand(t, fmt.Errorf("this MySQL's Group Replication: %w", testserver.ErrMissing))
		}
		m.exec(
			"CREATE USER 'root'@'198.%'", "GRANT ALL ON *.* TO 'root'@'198.%'", // a member that is apart
			"CHANGE REPLICATION SOURCE TO SOURCE_USER = 'root', SOURCE_PASSWORD = '' FOR CHANNEL 'group_replication_recovery'",
			"RESET BINARY LOGS AND GTIDS",
		)
		if i == 0 {
			m.exec("SET GLOBAL group_replication_bootstrap_group = ON", "START GROUP_REPLICATION", "SET GLOBAL group_replication_bootstrap_group = OFF")
		} else {
			m.exec("START GROUP_REPLICATION")
		}
		group = append(group, m)
		group[0].awaitText(online, fmt.Sprint(i+1))
	}
	return group
}

const online = "SELECT COUNT(*) FROM performance_schema.replication_group_members WHERE member_state = 'ONLINE'"

// awaitElected waits until one of the members takes writes, and returns it.
func awaitElected(t *testing.T, among []*member) (elected *member) {
	t.Helper()
	await(t, "a member is elected", func(ctx context.Context) error {
		for _, m := range among {
			if state, err := m.text(ctx, "SELECT CONCAT(@@GLOBAL.super_read_only, member_role, member_state)"+
				" FROM performance_schema.replication_group_members WHERE member_id = @@server_uuid"); err == nil && state == "0PRIMARYONLINE" {
				elected = m
				return nil
			}
		}
		return errors.New("none takes writes")
	})
	return elected
}

func without(group []*member, m *member) []*member {
	return slices.DeleteFunc(slices.Clone(group), func(other *member) bool { return other == m })
}

// gatewayCount is how many gateways a group has, each with all members in its DSN.
const gatewayCount = 3

// The primary of a group is cut off by a freeze, comes back when another was
// elected, and then the other is killed.
func TestGroupReplicationElectsAnotherPrimary(t *testing.T) { //nolint:paralleltest // a run has the machine to itself
	group := startGroup(t)
	group[0].createShop()
	dsn := shopDSN(group...)
	gateways := startGateways(t, gatewayCount, settings(dsn, map[string]string{"REDIS__ADDRS": testserver.Redis(t).Addr}))
	c := send(t, gateways...)
	c.awaitMore(60)

	frozen := time.Now()
	group[0].Stop()
	second := awaitElected(t, group[1:])
	electedAfterFreeze := time.Since(frozen)
	c.awaitMore(40)
	group[0].Cont()
	await(t, "the old primary follows", func(ctx context.Context) error {
		n, err := second.text(ctx, online)
		if err == nil && n != "3" {
			err = errors.New(n + " members are online")
		}
		return err
	})
	c.awaitMore(40)

	killed := time.Now()
	second.Kill()
	third := awaitElected(t, without(group, second))
	electedAfterKill := time.Since(killed)
	c.awaitMore(60)
	changes := serverChanges(t, gateways)

	j := c.judge(c.finish(), shopDSN(third))
	t.Logf("MySQL %s: another primary %v after the freeze and %v after the kill; the gateways saw %v changes of server",
		third.Version, electedAfterFreeze.Round(10*time.Millisecond), electedAfterKill.Round(10*time.Millisecond), changes)
	c.requireClean(j)
	for _, n := range changes {
		// One for each, and more when a session with the old primary has its answer
		// after all.
		require.GreaterOrEqual(t, n, 2.0)
	}
	audited(t, shopDSN(third))
}

// serverChanges asks each gateway how often its server became another.
func serverChanges(t *testing.T, gateways []*gateway) (changes []float64) {
	t.Helper()
	for _, g := range gateways {
		n, err := g.metric(t.Context(), "oncegate_ledger_server_changes_total")
		require.NoError(t, err)
		changes = append(changes, n)
	}
	return changes
}

// The primary is parted from the others, while the gateways still reach it: it
// cannot commit, gives up after a while, and the others elect another.
func TestGroupReplicationPartsFromItsPrimary(t *testing.T) { //nolint:paralleltest // a run has the machine to itself
	group := startGroup(t)
	group[0].createShop()
	gateways := startGateways(t, gatewayCount, settings(shopDSN(group...), map[string]string{"REDIS__ADDRS": testserver.Redis(t).Addr}))
	c := send(t, gateways...)
	c.awaitMore(60)

	parted := time.Now()
	group[1].Stop()
	group[2].Stop()
	c.awaitUnknown(10)
	group[0].awaitText("SELECT @@GLOBAL.super_read_only", "1")
	gaveUp := time.Since(parted)
	group[1].Cont()
	group[2].Cont()
	elected := awaitElected(t, group[1:])
	took := time.Since(parted)
	c.awaitMore(60)
	changes := serverChanges(t, gateways)

	j := c.judge(c.finish(), shopDSN(elected))
	t.Logf("MySQL %s: the parted primary gave up after %v, another was elected %v after the parting; the gateways saw %v changes of server",
		elected.Version, gaveUp.Round(10*time.Millisecond), took.Round(10*time.Millisecond), changes)
	c.requireClean(j)
	audited(t, shopDSN(elected))
}
