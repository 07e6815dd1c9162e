//go:build linux && ha

package hatest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/loadtest/verdict"
)

// replication is a MariaDB with a replica, between whom the link can be cut.
type replication struct {
	primary, replica *member
	link             *faultproxy.Proxy
}

// startReplication starts both; more are arguments of the primary.
func startReplication(t *testing.T, more ...string) *replication {
	t.Helper()
	r := &replication{}
	r.primary = newMember(t, testserver.StartMariaDBNode(t, append([]string{"--innodb-buffer-pool-size=64M"}, more...)...))
	r.replica = newMember(t, testserver.StartMariaDBNode(t, "--innodb-buffer-pool-size=64M", "--server-id=2", "--read-only=1",
		"--log-slave-updates=1", "--rpl-semi-sync-slave-enabled=1", "--slave-net-timeout=60"))
	r.link = faultproxy.New(t, r.primary.Addr)
	host, port, err := net.SplitHostPort(r.link.Addr())
	require.NoError(t, err)
	r.replica.exec(
		fmt.Sprintf("CHANGE MASTER TO MASTER_HOST = '%s', MASTER_PORT = %s, MASTER_USER = 'root', MASTER_CONNECT_RETRY = 1, MASTER_USE_GTID = slave_pos", host, port),
		"START SLAVE",
	)
	r.primary.createShop()
	r.replica.awaitText("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = 'shop'", "1")
	return r
}

// promote makes the replica the primary, as whoever watches them does: it first
// carries out what it has received.
func (r *replication) promote(t *testing.T) {
	t.Helper()
	r.replica.exec("STOP SLAVE IO_THREAD")
	await(t, "the replica has carried out what it received", func(ctx context.Context) error {
		received, err := r.replica.text(ctx, "SELECT @@GLOBAL.gtid_slave_pos")
		if err != nil {
			return err
		}
		state, err := r.replica.text(ctx, "SELECT COALESCE(MAX(state), 'none') FROM information_schema.processlist WHERE command = 'Slave_SQL'")
		if err == nil && state != "Slave has read all relay log; waiting for more updates" {
			err = errors.New("at " + received + ": " + state)
		}
		return err
	})
	r.replica.exec("STOP SLAVE", "SET GLOBAL read_only = 0")
}

// What a fail-over to the replica loses, with the settings that lose it and
// with those that do not. The link to the replica is silent before the primary
// dies.
func TestMariaDBReplicaIsPromoted(t *testing.T) { //nolint:paralleltest // a run has the machine to itself
	for _, c := range []struct { //nolint:paralleltest // as above
		name     string
		settings []string
		semiSync bool
		loses    bool
	}{
		{"Asynchronous", nil, false, true},
		{"SemiSyncThatGivesUpAfterASecond", semiSync("AFTER_SYNC", time.Second), true, true},
		{"SemiSyncAfterCommit", semiSync("AFTER_COMMIT", time.Hour), true, true},
		{"SemiSyncAfterSync", semiSync("AFTER_SYNC", time.Hour), true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := startReplication(t, c.settings...)
			if c.semiSync {
				r.primary.awaitText("SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'Rpl_semi_sync_master_clients'", "1")
			}
			g := startGateway(t, settings(shopDSN(r.primary, r.replica), map[string]string{"REDIS__ADDRS": testserver.Redis(t).Addr}))
			customers := send(t, g)
			customers.awaitMore(40)

			before := customers.heard()
			silent := time.Now()
			r.link.BlackHole()
			if c.loses {
				customers.awaitMore(40)
			} else {
				customers.awaitUnknown(20)
			}
			window := time.Since(silent)
			heard := customers.heard() - before
			r.primary.Kill()
			r.promote(t)
			customers.awaitMore(40)

			j := customers.judge(customers.finish(), shopDSN(r.replica))
			lost := j.lost()
			t.Logf("MariaDB %s, %s: link silent for %v, %d keys were acknowledged meanwhile; %d acknowledged orders lost",
				r.replica.Version, c.name, window.Round(10*time.Millisecond), heard, lost)
			if c.loses {
				require.Positive(t, lost, "the loss is there to be seen")
				require.Zero(t, j.findings.Counts[verdict.Duplicate], "no key has two orders, whatever was lost")
			} else {
				customers.requireClean(j)
			}
			audited(t, shopDSN(r.replica))
		})
	}
}

func semiSync(waitPoint string, timeout time.Duration) []string {
	return []string{
		"--rpl-semi-sync-master-enabled=1", "--rpl-semi-sync-master-wait-point=" + waitPoint,
		fmt.Sprintf("--rpl-semi-sync-master-timeout=%d", timeout.Milliseconds()),
	}
}

// lost counts the orders that a customer was told of and that are gone.
func (j *judged) lost() int { return j.findings.Counts[verdict.Lost] }
