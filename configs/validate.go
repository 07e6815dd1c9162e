package configs

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// Limits that the settings may not pass.
const (
	maxBatch     = 512 // beyond that a transaction only gets longer
	maxBatchRows = 500
	minSecret    = 32 // RFC 7518, section 3.2
	minMACKey    = 16
	// minWebhookSecret is that of Standard Webhooks, once decoded.
	minWebhookSecret = 24
)

// The faults of a gateway alone: other commands use nothing of what is missing.
const (
	noVerification = "auth.hs256_secret or auth.jwks_url is required with mysql.dsn"
	noMACKey       = "cache.mac_key is required with redis.addrs: without it whoever can write to Redis can forge an answer"
	noAdmin        = "admin.listen is required: only 'oncegate consume' does without"
)

func ofGateway(fault string) bool {
	return fault == noVerification || fault == noMACKey || fault == noAdmin
}

var (
	hostPattern   = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
	prefixPattern = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,32}$`)
	namePattern   = regexp.MustCompile(`^[!-~]{1,64}$`)
	amountPattern = regexp.MustCompile(`^(0|[1-9][0-9]{0,11})(\.[0-9]{1,2})?$`)
)

// Validate reports everything that is wrong, as an [*InvalidError].
func (c *Config) Validate() error {
	if faults := c.faults(); len(faults) > 0 {
		return &InvalidError{faults}
	}
	return nil
}

func (c *Config) faults() []string {
	v := &validation{}
	v.http(c)
	v.auth(c)
	v.database(c)
	v.redis(c)
	v.filter(c)
	v.policy(c)
	v.events(c)
	v.times(c)
	return v.faults
}

// validation gathers faults.
type validation struct{ faults []string }

func (v *validation) check(ok bool, format string, args ...any) {
	if !ok {
		v.faults = append(v.faults, fmt.Sprintf(format, args...))
	}
}

func (v *validation) within(name string, n, lowest, highest int) {
	v.check(n >= lowest && n <= highest, "%s (%d) must be from %d to %d", name, n, lowest, highest)
}

func (v *validation) size(name string, n, lowest, highest Size) {
	v.check(n >= lowest && n <= highest, "%s (%v) must be from %v to %v", name, n, lowest, highest)
}

// secret checks the length of a secret that may be absent.
func (v *validation) secret(name string, s Secret, lowest int) {
	v.check(!s.IsSet() || len(s.Reveal()) >= lowest, "%s must have at least %d bytes", name, lowest)
}

func (v *validation) oneOf(name, value string, allowed ...string) {
	v.check(slices.Contains(allowed, value), "%s (%q) must be one of %q", name, value, allowed)
}

func (v *validation) http(c *Config) {
	v.address("http.listen", c.HTTP.Listen)
	if c.Admin.Listen == "" {
		v.check(false, noAdmin)
	} else {
		v.address("admin.listen", c.Admin.Listen)
	}
	_, port, _ := net.SplitHostPort(c.HTTP.Listen)
	v.check(c.HTTP.Listen != c.Admin.Listen || port == "0",
		"http.listen and admin.listen (%s) must differ", c.HTTP.Listen)
	for i, host := range c.Admin.AllowedHosts {
		v.check(hostPattern.MatchString(host), "admin.allowed_hosts[%d] (%q) must be a host name, without scheme and port", i, host)
	}
	v.check((c.TLS.CertFile == "") == (c.TLS.KeyFile == ""), "tls.cert_file and tls.key_file must be set together")
	v.size("http.max_order_body", c.HTTP.MaxOrderBody, 1<<10, 16<<20)
	v.size("http.max_batch_body", c.HTTP.MaxBatchBody, 1<<10, 64<<20)
	v.within("http.max_batch_rows", c.HTTP.MaxBatchRows, 1, maxBatchRows)
	v.within("http.max_in_flight", c.HTTP.MaxInFlight, 0, 1_000_000)
	base, err := url.Parse(c.HTTP.ProblemBase)
	v.check(err == nil && base.IsAbs(), "http.problem_base (%q) must be the beginning of an absolute URI", c.HTTP.ProblemBase)
}

// address checks host:port without looking the host up.
func (v *validation) address(name, address string) {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	v.check(err == nil, "%s (%q) must be host:port", name, address)
}

// peer is address for somebody to connect to: without a host it would be this
// machine, which is seldom meant.
func (v *validation) peer(name, address string) {
	if strings.Contains(address, "@") {
		v.check(false, "%s must be host:port: a user and a password have settings of their own", name)
		return
	}
	if strings.HasPrefix(address, ":") {
		v.check(false, "%s (%q) must be host:port", name, address)
		return
	}
	v.address(name, address)
}

func (v *validation) auth(c *Config) {
	a := &c.Auth
	v.secret("auth.hs256_secret", a.HS256Secret, minSecret)
	v.secret("auth.hs256_previous_secret", a.HS256PreviousSecret, minSecret)
	v.check(a.JWKSURL == "" || !a.HS256Secret.IsSet() && !a.HS256PreviousSecret.IsSet(),
		"auth.jwks_url and auth.hs256_secret are both set: keep one, so that a public key is never taken for a secret")
	v.check(c.VerifiesTokens(), noVerification)
	if a.JWKSURL != "" {
		u, err := url.Parse(a.JWKSURL)
		v.check(err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname())),
			"auth.jwks_url must be an https address: whoever changes it on the way can sign tokens")
		v.check(err != nil || u.User == nil, "auth.jwks_url must hold no user and no password: it is shown to whoever may see the settings")
	}
	v.check(a.Audience != "", "auth.audience is required")
	v.check(a.Issuer != "", "auth.issuer is required")
	v.within("auth.token_cache", a.TokenCache, 1, 10_000_000)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (v *validation) database(c *Config) {
	if c.EmbeddedDatabase() {
		v.check(c.DataDir != "", "data_dir is required without mysql.dsn")
		// Gateways that share a Redis and not a database make an order each for one key.
		v.check(c.MySQL.DSN.IsSet() || c.EmbeddedRedis(),
			"mysql.dsn is required with redis.addrs: a gateway with a database of its own beside others makes second orders; mysql.dsn=%s says that it is alone", EmbeddedDSN)
	} else {
		dsn, err := parseDSN(c.MySQL.DSN.Reveal())
		v.check(err == nil, "mysql.dsn must be user:password@tcp(host:3306)/name: %v", withoutPassword(c.MySQL.DSN.Reveal(), err))
		v.check(err != nil || dsn.DBName != "", "mysql.dsn names no database")
		v.check(err != nil || !lacksHost(c.MySQL.DSN.Reveal()), "mysql.dsn lists an empty host, which would be this machine")
	}
	v.within("mysql.read_conns", c.MySQL.ReadConns, 1, 10_000)
	v.within("ledger.workers", c.Ledger.Workers, 1, 64)
	v.within("ledger.max_batch", c.Ledger.MaxBatch, 1, maxBatch)
	v.within("ledger.max_rows", c.Ledger.MaxRows, 1, 4096)
	v.within("ledger.queue", c.Ledger.Queue, 1, 1_000_000)
}

// parseDSN is the driver's own, which panics at a parameter that it has given up.
func parseDSN(dsn string) (*mysql.Config, error) {
	_, params, _ := strings.Cut(dsn[strings.LastIndexByte(dsn, '/')+1:], "?")
	for param := range strings.SplitSeq(params, "&") {
		if name, _, _ := strings.Cut(param, "="); name == "strict" {
			return nil, errors.New("strict is no parameter any more, sessions are always strict")
		}
	}
	return mysql.ParseDSN(dsn)
}

// addressed is a DSN in which what follows the last slash is the database and its
// parameters, and no part of a password.
var addressed = regexp.MustCompile(`@[a-z0-9]*\([^()@]*\)/[^/@]*$`)

// withoutPassword is an error of the driver that may be shown: what it cannot read
// it quotes.
func withoutPassword(dsn string, err error) error {
	if !addressed.MatchString(dsn) {
		return errors.New("no @tcp(host:3306)/name is at its end")
	}
	return err
}

// lacksHost reports whether a valid DSN lists several hosts, tcp(db1,db2), and
// one of them is missing. The address is looked for where the driver does.
func lacksHost(dsn string) bool {
	address := dsn[:strings.LastIndexByte(dsn, '/')]
	_, list, _ := strings.Cut(strings.TrimSuffix(address[strings.LastIndexByte(address, '@')+1:], ")"), "(")
	hosts := strings.Split(list, ",")
	return len(hosts) > 1 && slices.ContainsFunc(hosts, func(host string) bool {
		host = strings.TrimSpace(host)
		return host == "" || host[0] == ':'
	})
}

func (v *validation) redis(c *Config) {
	r := &c.Redis
	for i, address := range r.Addrs {
		v.peer(fmt.Sprintf("redis.addrs[%d]", i), address)
	}
	v.check(r.MasterName == "" || !r.Cluster, "redis.master_name and redis.cluster are both set: addrs are Sentinels or nodes of a Cluster")
	v.check(!c.EmbeddedRedis() || r.MasterName == "" && !r.Cluster, "redis.addrs is required with redis.master_name and redis.cluster")
	v.check(len(r.Addrs) < 2 || r.MasterName != "" || r.Cluster,
		"redis.addrs has %d addresses: set redis.master_name (Sentinel) or redis.cluster", len(r.Addrs))
	v.check(r.MasterName != "" || r.SentinelUsername == "" && !r.SentinelPassword.IsSet(),
		"redis.sentinel_username and redis.sentinel_password need redis.master_name")
	v.check(!r.Cluster || r.DB == 0, "redis.db (%d) must be 0 with redis.cluster", r.DB)
	v.within("redis.db", r.DB, 0, 1_000_000)
	v.within("redis.pool_size", r.PoolSize, 0, 100_000)
	v.within("breaker.failures", c.Breaker.Failures, 1, 1_000_000)
}

func (v *validation) filter(c *Config) {
	k := &c.Cache
	v.check(prefixPattern.MatchString(k.Prefix), "cache.prefix (%q) must match %s", k.Prefix, prefixPattern)
	v.secret("cache.mac_key", k.MACKey, minMACKey)
	v.check(c.EmbeddedRedis() || k.MACKey.IsSet(), noMACKey)
	v.size("cache.max_body", k.MaxBody, 1, 1<<20)
	v.within("cache.local_entries", k.LocalEntries, 1, 100_000_000)
	v.size("cache.local_bytes", k.LocalBytes, 1<<20, 1<<40)
}

func (v *validation) events(c *Config) {
	v.within("batches.async_workers", c.Batches.AsyncWorkers, 0, 64)
	v.check(c.Batches.AsyncLease > 2*c.RequestBudget,
		"batches.async_lease (%s) must be above twice request_budget (%s)", FormatDuration(c.Batches.AsyncLease), FormatDuration(c.RequestBudget))
	for name, secret := range map[string]Secret{"webhooks.secret": c.Webhooks.Secret, "webhooks.previous_secret": c.Webhooks.PreviousSecret} {
		if !secret.IsSet() {
			continue
		}
		raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret.Reveal(), "whsec_"))
		v.check(err == nil, "%s must be base64, with or without the prefix whsec_", name)
		v.check(err != nil || len(raw) >= minWebhookSecret, "%s must have at least %d bytes, decoded", name, minWebhookSecret)
	}
	v.check(c.Webhooks.Secret.IsSet() || !c.Webhooks.PreviousSecret.IsSet(), "webhooks.previous_secret needs webhooks.secret")
	m := &c.Messages
	v.within("messages.workers", m.Workers, 1, 1024)
	v.within("messages.max_deliveries", m.MaxDeliveries, 1, 1_000_000)
	for i, address := range m.Addrs {
		v.peer(fmt.Sprintf("messages.addrs[%d]", i), address)
	}
	if m.Broker == "" {
		v.check(len(m.Addrs) == 0, "messages.broker is required with messages.addrs")
		return
	}
	v.oneOf("messages.broker", m.Broker, "redis", "kafka", "amqp")
	v.check(len(m.Addrs) > 0 || m.Broker == "amqp", "messages.addrs is required with messages.broker")
	v.check(m.Broker != "amqp" || isAMQP(m.Password), "messages.password must be the URI of the AMQP broker, such as amqp://user:password@host:5672/")
	v.check(m.Broker != "amqp" || !m.TLS || strings.HasPrefix(m.Password.Reveal(), "amqps:"), "messages.password must begin with amqps:// where messages.tls is true")
	v.check(m.Broker != "amqp" || len(m.Addrs) == 0 && m.Username == "", "messages.addrs and messages.username are not for AMQP: its URI in messages.password has them")
	v.check(m.Topic != "" && m.ParkedTopic != "" && m.Topic != m.ParkedTopic, "messages.topic and messages.parked_topic are required and must differ")
	v.check(m.Group != "", "messages.group is required")
	v.check(namePattern.MatchString(m.Name), "messages.name must be 1 to 64 visible ASCII characters")
}

// isAMQP reports whether a secret is the URI of a broker. What is wrong with it is
// not told: the error would quote it.
func isAMQP(uri Secret) bool {
	u, err := url.Parse(uri.Reveal())
	return err == nil && u.Host != "" && (u.Scheme == "amqp" || u.Scheme == "amqps")
}

func (v *validation) policy(c *Config) {
	v.check(c.Idempotency.ReusedStatus == http.StatusConflict || c.Idempotency.ReusedStatus == http.StatusUnprocessableEntity,
		"idempotency.reused_status (%d) must be 409 or 422", c.Idempotency.ReusedStatus)
	v.check(c.Limits.Rate >= 0, "limits.rate (%g) must not be negative", c.Limits.Rate)
	v.check(c.Limits.Burst >= 1, "limits.burst (%g) must be at least 1", c.Limits.Burst)
	p := c.Users.ProvisionBalance
	v.check(p == ProvisionAuto || p == ProvisionNone || amountPattern.MatchString(p),
		"users.provision_balance (%q) must be auto, none or an amount such as 1000.00", p)
	v.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	v.oneOf("log.format", c.Log.Format, "auto", "json", "text")
	if c.Tracing.Endpoint != "" {
		u, err := url.Parse(c.Tracing.Endpoint)
		v.check(err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https"), "tracing.endpoint must be an http or https address")
		v.check(err != nil || u.User == nil,
			"tracing.endpoint must hold no user and no password: it is shown to whoever may see the settings; OTEL_EXPORTER_OTLP_HEADERS is for them")
	}
	v.check(c.Tracing.Sample >= 0 && c.Tracing.Sample <= 1, "tracing.sample (%g) must be from 0 to 1", c.Tracing.Sample)
}
