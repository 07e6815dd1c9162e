package configs

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	someSecret = "0123456789abcdef0123456789abcdef"
	someDSN    = "oncegate:hunter2@tcp(db:3306)/oncegate"
)

func TestTheDefaultsAreValid(t *testing.T) {
	t.Parallel()
	c := Default()
	require.NoError(t, c.Validate())
}

func TestEveryFaultNamesItsSettings(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*Config){
		"redis.op_timeout (1s) must be shorter than mysql.lock_wait_timeout (1s)":     func(c *Config) { c.Redis.OpTimeout = time.Second },
		"mysql.lock_wait_timeout (2s) must be shorter than mysql.read_timeout (2s)":   func(c *Config) { c.MySQL.LockWaitTimeout, c.MySQL.ReadTimeout = 2*time.Second, 2*time.Second },
		"mysql.read_timeout (6s) must be shorter than request_budget (6s)":            func(c *Config) { c.MySQL.ReadTimeout = 6 * time.Second },
		"request_budget (6s) must be shorter than ttl.in_progress (5s)":               func(c *Config) { c.TTL.InProgress = 5 * time.Second },
		"ttl.in_progress (18s) must be shorter than http.write_timeout (18s)":         func(c *Config) { c.TTL.InProgress = 18 * time.Second },
		"http.write_timeout (20s) must be shorter than mysql.wait_timeout (20s)":      func(c *Config) { c.HTTP.WriteTimeout = 20 * time.Second },
		"mysql.wait_timeout (30s) must be shorter than shutdown_grace (25s)":          func(c *Config) { c.MySQL.WaitTimeout = 30 * time.Second },
		"max_wait + request_budget (18s) must be shorter than http.write_timeout":     func(c *Config) { c.MaxWait = 12 * time.Second },
		"http.read_timeout + request_budget (21s) must be shorter than http.write_t":  func(c *Config) { c.HTTP.ReadTimeout = 15 * time.Second },
		"http.drain_delay + http.write_timeout (25s) must be shorter than shutdown_g": func(c *Config) { c.HTTP.DrainDelay = 7 * time.Second },
		"in_progress_grace (10s) must be shorter than ttl.in_progress (10s)":          func(c *Config) { c.InProgressGrace = 10 * time.Second },
		"ttl.in_progress (10s) must be shorter than ttl.receipt (10s)":                func(c *Config) { c.TTL.Receipt = 10 * time.Second },
		"ttl.in_progress (500ms) must be from 1s to 1h":                               func(c *Config) { c.TTL.InProgress = 500 * time.Millisecond },
		"mysql.lock_wait_timeout (1.5s) must be whole seconds":                        func(c *Config) { c.MySQL.LockWaitTimeout = 1500 * time.Millisecond },
		"mysql.lock_wait_timeout (3s) must be from 1s to 2s":                          func(c *Config) { c.MySQL.LockWaitTimeout = 3 * time.Second },
		"mysql.dsn is required with redis.addrs": func(c *Config) {
			c.Redis.Addrs, c.Cache.MACKey = []string{"r:6379"}, NewSecret("a key of sixteen bytes or more")
		},
		"cache.mac_key is required with redis.addrs":                    func(c *Config) { c.Redis.Addrs = []string{"r:6379"} },
		"cache.mac_key must have at least 16 bytes":                     func(c *Config) { c.Cache.MACKey = NewSecret("short") },
		"auth.hs256_secret or auth.jwks_url is required with mysql.dsn": func(c *Config) { c.MySQL.DSN = NewSecret(someDSN) },
		"auth.hs256_secret must have at least 32 bytes":                 func(c *Config) { c.Auth.HS256Secret = NewSecret("short") },
		"auth.jwks_url and auth.hs256_secret are both set":              func(c *Config) { c.Auth.HS256Secret, c.Auth.JWKSURL = NewSecret(someSecret), "https://a/b" },
		"auth.jwks_url must be an https address":                        func(c *Config) { c.Auth.JWKSURL = "http://login.example.com/keys" },
		"mysql.dsn must be user:password@tcp(host:3306)/name":           func(c *Config) { c.MySQL.DSN = NewSecret("hunter2") },
		"mysql.dsn names no database":                                   func(c *Config) { c.MySQL.DSN = NewSecret("u:hunter2@tcp(db:3306)/") },
		"mysql.dsn lists an empty host":                                 func(c *Config) { c.MySQL.DSN = NewSecret("u:hunter2@tcp(db1:3306,)/o") },
		"data_dir is required without mysql.dsn":                        func(c *Config) { c.DataDir = "" },
		"redis.addrs has 2 addresses":                                   func(c *Config) { c.Redis.Addrs = []string{"a:1", "b:1"} },
		"redis.master_name and redis.cluster are both set":              func(c *Config) { c.Redis.MasterName, c.Redis.Cluster = "m", true },
		"redis.addrs is required with":                                  func(c *Config) { c.Redis.Cluster = true },
		"redis.db (1) must be 0 with redis.cluster":                     func(c *Config) { c.Redis.DB, c.Redis.Cluster = 1, true },
		"strict is no parameter any more":                               func(c *Config) { c.MySQL.DSN = NewSecret("u:p@tcp(db:3306)/o?strict=true") },
		"redis.addrs[0] must be host:port: a user":                      func(c *Config) { c.Redis.Addrs = []string{"redis://:hunter2@redis:6379"} },
		"redis.addrs[1] must be host:port: a user":                      func(c *Config) { c.Redis.Addrs, c.Redis.Cluster = []string{"a:1", "hunter2@redis:6379"}, true },
		"auth.jwks_url must hold no user and no password":               func(c *Config) { c.Auth.JWKSURL = "https://u:hunter2@login.example.com/keys" },
		"tracing.endpoint must hold no user and no password":            func(c *Config) { c.Tracing.Endpoint = "http://u:hunter2@collector:4318" },
		`redis.addrs[0] ("redis") must be host:port`:                    func(c *Config) { c.Redis.Addrs = []string{"redis"} },
		`redis.addrs[1] (":6379") must be host:port`:                    func(c *Config) { c.Redis.Addrs, c.Redis.Cluster = []string{"a:1", ":6379"}, true },
		`admin.allowed_hosts[1] ("ops:9090") must be a host name`:       func(c *Config) { c.Admin.AllowedHosts = []string{"ops.example.com", "ops:9090"} },
		`admin.allowed_hosts[0] ("https://ops") must be a host name`:    func(c *Config) { c.Admin.AllowedHosts = []string{"https://ops"} },
		`admin.allowed_hosts[0] ("") must be a host name`:               func(c *Config) { c.Admin.AllowedHosts = []string{""} },
		`http.listen (":99999") must be host:port`:                      func(c *Config) { c.HTTP.Listen = ":99999" },
		"http.listen and admin.listen (127.0.0.1:9090) must differ":     func(c *Config) { c.HTTP.Listen = c.Admin.Listen },
		"tls.cert_file and tls.key_file must be set together":           func(c *Config) { c.TLS.CertFile = "tls.crt" },
		"webhooks.secret must have at least 24 bytes, decoded":          func(c *Config) { c.Webhooks.Secret = NewSecret("whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI=") }, // 23
		"webhooks.secret must be base64":                                func(c *Config) { c.Webhooks.Secret = NewSecret("whsec_hunter2!") },
		"http.problem_base":                                             func(c *Config) { c.HTTP.ProblemBase = "problems/" },
		"ledger.max_batch (513)":                                        func(c *Config) { c.Ledger.MaxBatch = 513 },
		"ledger.max_batch (0)":                                          func(c *Config) { c.Ledger.MaxBatch = 0 },
		"idempotency.reused_status":                                     func(c *Config) { c.Idempotency.ReusedStatus = 400 },
		"tracing.endpoint must be an http or https address":             func(c *Config) { c.Tracing.Endpoint = "collector:4317" },
		"tracing.sample (1.5)":                                          func(c *Config) { c.Tracing.Sample = 1.5 },
		"limits.rate (-1)":                                              func(c *Config) { c.Limits.Rate = -1 },
		"limits.burst (-1) must be at least 1":                          func(c *Config) { c.Limits.Burst = -1 },
		"limits.burst (0) must be at least 1":                           func(c *Config) { c.Limits.Burst = 0 },
		"messages.workers (0)":                                          func(c *Config) { c.Messages.Workers = 0 },
		`messages.addrs[1] ("") must be host:port`: func(c *Config) {
			c.Messages.Broker, c.Messages.Addrs = "kafka", []string{"a:9092", "", "b:9092"}
		},
		`messages.addrs[0] ("") must be host:port`: func(c *Config) {
			c.Messages.Broker, c.Messages.Addrs = "redis", []string{""}
		},
		`messages.addrs[0] (":6379") must be host:port`:        func(c *Config) { c.Messages.Broker, c.Messages.Addrs = "redis", []string{":6379"} },
		`messages.addrs[0] ("redis") must be host:port`:        func(c *Config) { c.Messages.Addrs = []string{"redis"} },
		"messages.addrs[0] must be host:port: a user":          func(c *Config) { c.Messages.Broker, c.Messages.Addrs = "redis", []string{"u:hunter2@redis:6379"} },
		"messages.broker is required with messages.addrs":      func(c *Config) { c.Messages.Addrs = []string{"redis:6379"} },
		"messages.password must be the URI of the AMQP broker": func(c *Config) { c.Messages.Broker = "amqp" },
		"messages.password must be the URI of the AMQP broker, ": func(c *Config) {
			c.Messages.Broker, c.Messages.Password = "amqp", NewSecret("amqp://u:hunter2%zz@h:5672/")
		},
		"messages.password must begin with amqps:// where messages.tls is true": func(c *Config) {
			c.Messages.Broker, c.Messages.Password, c.Messages.TLS = "amqp", NewSecret("amqp://u:hunter2@h:5672/"), true
		},
		"messages.addrs and messages.username are not for AMQP": func(c *Config) {
			c.Messages.Broker, c.Messages.Password, c.Messages.Username = "amqp", NewSecret("amqp://u:hunter2@h:5672/"), "u"
		},
		"messages.name must be 1 to 64 visible ASCII characters": func(c *Config) {
			c.Messages.Broker, c.Messages.Addrs, c.Messages.Name = "kafka", []string{"a:9092"}, strings.Repeat("n", 65)
		},
		"messages.max_deliveries (0)":                            func(c *Config) { c.Messages.MaxDeliveries = 0 },
		"retention.compact_every (1ns) must be 0 or at least 1s": func(c *Config) { c.Retention.CompactEvery = 1 },
		"limits.burst (0.5)":                                     func(c *Config) { c.Limits.Rate, c.Limits.Burst = 1, 0.5 },
		"users.provision_balance":                                func(c *Config) { c.Users.ProvisionBalance = "10.001" },
		`log.level ("trace")`:                                    func(c *Config) { c.Log.Level = "trace" },
		`cache.prefix ("a{b}")`:                                  func(c *Config) { c.Cache.Prefix = "a{b}" },
	} {
		c := Default()
		change(&c)
		err := c.Validate()
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hunter2", "a secret must not be in a message")
	}
}

// TestATooLargeValueIsToldOfItsRange holds for values that no number has room
// for, from each source that can have them.
func TestATooLargeValueIsToldOfItsRange(t *testing.T) {
	t.Parallel()
	const huge = "99999999999999999999"
	tooLarge := map[string]string{kindDuration: "9999999h", kindSize: huge + "GiB", kindInt: huge}
	c := Default()
	for l := range leaves(&c) {
		value, numeric := tooLarge[l.kind()]
		if !numeric {
			continue
		}
		key, _, _ := strings.Cut(value, "GiB")
		for _, s := range []Sources{
			{Environ: []string{l.env() + "=" + value}},
			{File: write(t, l.name+": "+key+"\n")},
			{Flags: flags(t, "--"+l.name+"="+value)},
		} {
			found := faults(t, s)
			require.True(t, slices.ContainsFunc(found, func(fault string) bool {
				return strings.HasPrefix(fault, l.name+" (") && strings.Contains(fault, ") must be ") && !strings.Contains(fault, "such as")
			}), "%s: %q", l.name, found)
		}
	}
	base, err := Load(Sources{})
	require.NoError(t, err)
	_, _, err = base.Override(map[string]string{"ttl.receipt": "9999999h"})
	require.ErrorContains(t, err, "ttl.receipt (over 106751d) must be from 1s to 3650d")
}

func TestANumberHasOneSpelling(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"+5", "05", "-0", " 5", "5 ", "5_0", "0x5", "5.0", "5e0", "٥", "99999999999999999999x"} {
		require.Equal(t, []string{"http.max_in_flight (env ONCEGATE_HTTP__MAX_IN_FLIGHT) must be a whole number"},
			faults(t, Sources{Environ: []string{"ONCEGATE_HTTP__MAX_IN_FLIGHT=" + text}}), text)
	}
	for _, text := range []string{"010", "08", "-05", "01.5", "0_1"} {
		path := write(t, "http:\n  max_in_flight: "+text+"\n")
		_, err := Load(Sources{File: path})
		require.EqualError(t, err, path+": line 2: a number must be written without a leading zero, or in quotes", text)
	}
	for _, text := range []string{"1_0", "010", "0x10", "+1", ".5", "1.", "Inf", "NaN"} {
		_, err := Load(Sources{Environ: []string{"ONCEGATE_LIMITS__RATE=" + text}})
		require.ErrorContains(t, err, "limits.rate (env ONCEGATE_LIMITS__RATE) must be a number", text)
	}
	l, err := Load(Sources{File: write(t, "http: {max_in_flight: 10}\nlimits: {rate: 0.5}\ncache: {prefix: '010'}\nbatches: {async_workers: 0}\n")})
	require.NoError(t, err)
	require.Equal(t, 10, l.Config.HTTP.MaxInFlight)
}

func TestNoHostOfADSNIsEmpty(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]bool{
		"(a:1,)": true, "(,a:1)": true, "(a:1,,b:2)": true, "(a:1, ,b:2)": true, "(a,:3306)": true, "(,)": true,
		"(a:1,b:2)": false, "(a, b)": false, "(a)": false, "(:3306)": false, "([::1]:1,[::2]:2)": false, "": false,
	} {
		require.Equal(t, want, lacksHost("u:(,)/@tcp"+list+"/d?loc=Europe%2FBerlin"), list)
		require.Equal(t, want, lacksHost("tcp"+list+"/d"), list)
	}
}

func TestAllFaultsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	path := write(t, "http: {listen: 8080}\nnonsense: 1\nledger: {max_batch: 0}\nlog: {level: loud}\n")
	require.Len(t, faults(t, Sources{File: path}), 4)
}

func TestAGatewayThatIsAloneMayHaveARedisBesideTheEmbeddedDatabase(t *testing.T) {
	t.Parallel()
	c := Default()
	c.MySQL.DSN = NewSecret(EmbeddedDSN)
	c.Redis.Addrs, c.Cache.MACKey = []string{"r:6379"}, NewSecret("a key of sixteen bytes or more")
	require.NoError(t, c.Validate())
	require.True(t, c.EmbeddedDatabase())
}

func TestUsersAreProvisionedByDefaultInTheEmbeddedDatabaseOnly(t *testing.T) {
	t.Parallel()
	c := Default()
	balance, ok := c.Provision()
	require.True(t, ok)
	require.Equal(t, "1000.00", balance)

	c.MySQL.DSN = NewSecret(someDSN)
	_, ok = c.Provision()
	require.False(t, ok)

	c.Users.ProvisionBalance = "5"
	balance, ok = c.Provision()
	require.True(t, ok)
	require.Equal(t, "5", balance)

	c = Default()
	c.Users.ProvisionBalance = ProvisionNone
	_, ok = c.Provision()
	require.False(t, ok)
}
