//go:build unix

package main

import (
	"database/sql"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/loopback"
	"github.com/oncegate/oncegate/internal/testserver"
	"github.com/oncegate/oncegate/loadtest/measure"
	"github.com/oncegate/oncegate/loadtest/result"
)

const (
	deploymentSecret  = "0123456789abcdef0123456789abcdef"
	deploymentWebhook = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
)

// deployment is a gateway as a process, with a MySQL and a Redis of its own.
type deployment struct {
	gateway      string // the program
	url, admin   string
	dsn          string
	mysql        *testserver.SQLServer
	redis        *testserver.RedisServer
	audit        func() (findings string, err error)
	tokens, hook string // files with the secrets
}

func deploy(t *testing.T, gateway string) *deployment {
	t.Helper()
	d := &deployment{gateway: gateway, mysql: testserver.StartMySQL(t), redis: testserver.StartRedis(t)}
	d.dsn = d.mysql.Database(t)
	dir := t.TempDir()
	d.tokens, d.hook = filepath.Join(dir, "tokens"), filepath.Join(dir, "hook")
	require.NoError(t, os.WriteFile(d.tokens, []byte(deploymentSecret), 0o600))
	require.NoError(t, os.WriteFile(d.hook, []byte(deploymentWebhook), 0o600))
	listen, admin := reserved(t), reserved(t)
	d.url, d.admin = "http://"+listen, "http://"+admin
	env := append(os.Environ(), "ONCEGATE_MYSQL__DSN="+d.dsn, "ONCEGATE_REDIS__ADDRS="+d.redis.Addr, "ONCEGATE_DATA_DIR="+dir,
		"ONCEGATE_CACHE__MAC_KEY="+deploymentSecret, "ONCEGATE_AUTH__HS256_SECRET="+deploymentSecret, "ONCEGATE_WEBHOOKS__SECRET="+deploymentWebhook,
		"ONCEGATE_HTTP__LISTEN="+listen, "ONCEGATE_ADMIN__LISTEN="+admin, "ONCEGATE_LOG__LEVEL=error")
	run := func(args ...string) *exec.Cmd {
		cmd := exec.Command(gateway, args...)
		cmd.Env = env
		return cmd
	}
	d.audit = func() (string, error) {
		out, err := run("audit").CombinedOutput()
		return string(out), err
	}
	out, err := run("migrate", "up").CombinedOutput()
	require.NoError(t, err, string(out))
	var log strings.Builder
	serve := run("serve")
	serve.Stdout, serve.Stderr = &log, &log
	require.NoError(t, serve.Start())
	t.Cleanup(func() {
		require.NoError(t, serve.Process.Signal(syscall.SIGTERM))
		require.NoError(t, serve.Wait(), log.String())
	})
	require.Eventually(t, func() bool {
		resp, err := http.Get(d.url + "/readyz")
		return err == nil && resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	}, time.Minute, 50*time.Millisecond, "the gateway is ready")
	return d
}

func reserved(t *testing.T) string {
	t.Helper()
	port, err := loopback.Reserve()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, port.Release()) })
	return port.Addr()
}

// load runs the program against the deployment. A busy machine may make the
// times invalid (exit code 99); what was promised must hold all the same.
func (d *deployment) load(t *testing.T, meanwhile func(), more ...string) *result.Result {
	t.Helper()
	out := t.TempDir()
	dsn, err := mysql.ParseDSN(d.dsn)
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0], append([]string{
		"run", "--target", d.url, "--token-secret-file", d.tokens, "--webhook-secret-file", d.hook, "--create-users", "--admin-url", d.admin,
		"--audit-dsn", dsn.FormatDSN(), "--users", "200", "--rate", "40/s", "--out", out, "--marks", filepath.Join(out, "marks"), "--quiet",
	}, more...)...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Start())
	meanwhile()
	_ = cmd.Wait() // its exit code tells
	require.Contains(t, []int{exitOK, exitThreshold}, cmd.ProcessState.ExitCode(), said.String())
	require.FileExists(t, filepath.Join(out, reportName))
	r, err := result.Read(filepath.Join(out, resultName))
	require.NoError(t, err)
	require.True(t, r.Verdict.Passed, said.String())
	require.NotNil(t, r.Verdict.Audit, r.Verdict.AuditNote)
	findings, err := d.audit()
	require.NoError(t, err, findings)
	return r
}

// A storefront's evening with its Redis killed and its database restarted.
func mixedThroughAnOutage(t *testing.T, gateway string) {
	t.Helper()
	d := deploy(t, gateway)
	r := d.load(t, func() {
		orders := func() (n int) {
			db := openDatabase(t, d.dsn)
			defer func() { require.NoError(t, db.Close()) }()
			require.NoError(t, db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM orders").Scan(&n))
			return n
		}
		begun := func() bool { return orders() > 50 }
		require.Eventually(t, begun, time.Minute, 50*time.Millisecond, "orders are made")
		d.redis.Kill()
		without := orders() + 50
		require.Eventually(t, func() bool { return orders() > without }, time.Minute, 50*time.Millisecond, "orders are made without Redis")
		d.mysql.Restart()
	}, "--scenario", "mixed", "--duration", "15s")
	t.Logf("%d requests, %d keys audited, valid: %t", r.Totals.Requests, r.Verdict.Audit.Keys, r.Valid.Valid)
}

// Orders and their payments, each delivered up to three times.
func callbacksAgainstAGateway(t *testing.T, gateway string) {
	t.Helper()
	d := deploy(t, gateway)
	r := d.load(t, func() {}, "--scenario", "callbacks", "--duration", "4s")
	var accepted int64
	for _, o := range r.Outcomes {
		if o.Outcome == measure.Accepted {
			accepted = o.Count
		}
	}
	require.Positive(t, accepted, "payments were taken")
	db := openDatabase(t, d.dsn)
	defer func() { require.NoError(t, db.Close()) }()
	var paid int
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM orders WHERE status = 'PAID'").Scan(&paid))
	require.Positive(t, paid)
}

func openDatabase(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	require.NoError(t, err)
	return db
}
