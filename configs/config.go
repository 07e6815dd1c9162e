package configs

import "time"

// Config is everything that can be set. The conf tags are the names in YAML;
// the doc tags are the documentation, in flags and in docs/operating.md. What is
// live can be changed while the gateway runs: it is read anew for every use.
type Config struct {
	DataDir string `conf:"data_dir" doc:"where the embedded database and generated secrets are kept"`

	HTTP        HTTP        `conf:"http"`
	Admin       Admin       `conf:"admin"`
	TLS         TLS         `conf:"tls"`
	Auth        Auth        `conf:"auth"`
	MySQL       MySQL       `conf:"mysql"`
	Redis       Redis       `conf:"redis"`
	Cache       Cache       `conf:"cache"`
	Breaker     Breaker     `conf:"breaker"`
	TTL         TTL         `conf:"ttl"`
	Ledger      Ledger      `conf:"ledger"`
	Idempotency Idempotency `conf:"idempotency"`
	Limits      Limits      `conf:"limits"`
	Users       Users       `conf:"users"`
	Retention   Retention   `conf:"retention"`
	Batches     Batches     `conf:"batches"`
	Webhooks    Webhooks    `conf:"webhooks"`
	Messages    Messages    `conf:"messages"`
	Log         Log         `conf:"log"`
	Tracing     Tracing     `conf:"tracing"`

	InProgressGrace time.Duration `conf:"in_progress_grace" live:"yes" doc:"how long a mark in Redis is believed before the database is asked"`
	RequestBudget   time.Duration `conf:"request_budget" live:"yes" doc:"from the arrival of an order to its answer"`
	MaxWait         time.Duration `conf:"max_wait" live:"yes" doc:"the longest 'Prefer: wait=n' that is honoured"`
	ShutdownGrace   time.Duration `conf:"shutdown_grace" doc:"for everything between the stop signal and the exit"`
}

// HTTP is the public listener.
type HTTP struct {
	Listen            string        `conf:"listen" doc:"address of the public listener; port 0 takes a free one"`
	ReadHeaderTimeout time.Duration `conf:"read_header_timeout" doc:"for the header of a request"`
	ReadTimeout       time.Duration `conf:"read_timeout" doc:"for a whole request, body included"`
	WriteTimeout      time.Duration `conf:"write_timeout" doc:"from the end of a request's header to the end of its answer; over HTTP/2 also for how long a client may take no byte"`
	IdleTimeout       time.Duration `conf:"idle_timeout" doc:"for a connection between two requests"`
	DrainDelay        time.Duration `conf:"drain_delay" doc:"how long requests are still taken after /readyz went false, so that load balancers see it"`
	MaxOrderBody      Size          `conf:"max_order_body" live:"yes" doc:"largest body of one order"`
	MaxBatchBody      Size          `conf:"max_batch_body" live:"yes" doc:"largest body of a batch"`
	MaxBatchRows      int           `conf:"max_batch_rows" live:"yes" doc:"most rows in a batch"`
	MaxInFlight       int           `conf:"max_in_flight" live:"yes" doc:"most requests at once, those whose body or answer is on its way not counted; 0: no bound"`
	ProblemBase       string        `conf:"problem_base" doc:"what the type of every problem document begins with"`
}

// Admin is the listener for metrics, provisioning and key inspection.
type Admin struct {
	Listen        string   `conf:"listen" doc:"address of the admin listener; empty, for 'oncegate consume' alone: none"`
	AllowLoopback bool     `conf:"allow_loopback" doc:"callers from this machine need no token; others need the scope admin.read, or admin.write to change something"`
	OpenMetrics   bool     `conf:"open_metrics" doc:"whoever can connect may read /metrics"`
	AllowedHosts  []string `conf:"allowed_hosts" doc:"names this listener is called by, beside localhost and IP addresses"`
}

// TLS is what both listeners show to whoever connects.
type TLS struct {
	CertFile string `conf:"cert_file" doc:"PEM file with the certificate and its chain, for both listeners; read again when it changes; empty: plain HTTP"`
	KeyFile  string `conf:"key_file" doc:"PEM file with the key of the certificate"`
}

// Auth says whose tokens are believed.
type Auth struct {
	HS256Secret         Secret        `conf:"hs256_secret" doc:"shared secret of tokens, at least 32 bytes; generated once under data_dir for the embedded database"`
	HS256PreviousSecret Secret        `conf:"hs256_previous_secret" doc:"still accepted, so that the secret can be replaced without a gap"`
	JWKSURL             string        `conf:"jwks_url" doc:"where the issuer publishes its keys; takes the place of hs256_secret"`
	Audience            string        `conf:"audience" doc:"the aud that a token must have"`
	Issuer              string        `conf:"issuer" doc:"the iss that a token must have"`
	Leeway              time.Duration `conf:"leeway" doc:"difference of clocks that is tolerated in exp and nbf"`
	TokenCache          int           `conf:"token_cache" doc:"verified tokens that are remembered, for five minutes and never past their expiry"`
}

// MySQL is the database that decides.
type MySQL struct {
	DSN             Secret        `conf:"dsn" doc:"user:password@tcp(host:3306)/name of MySQL or MariaDB; tcp(db1:3306,db2:3306) uses the host whose read_only is off; empty: the embedded SQLite under data_dir, and no redis.addrs; embedded: the same, beside a Redis that no other gateway has"`
	ReadConns       int           `conf:"read_conns" doc:"connections for reads; the ledger has its own"`
	ConnectTimeout  time.Duration `conf:"connect_timeout" doc:"for one connection attempt"`
	StartTimeout    time.Duration `conf:"start_timeout" doc:"how long the start waits for a database that is not there yet"`
	LockWaitTimeout time.Duration `conf:"lock_wait_timeout" doc:"for a row that another transaction holds; whole seconds"`
	ReadTimeout     time.Duration `conf:"read_timeout" doc:"for any reply of the database, that to COMMIT included"`
	WaitTimeout     time.Duration `conf:"wait_timeout" doc:"when the database ends the session of a frozen gateway and frees its rows; whole seconds"`
}

// Redis is the shared filter.
type Redis struct {
	Addrs            []string      `conf:"addrs" doc:"host:port of the server, of the Sentinels or of some Cluster nodes; empty: a Redis within the process"`
	MasterName       string        `conf:"master_name" doc:"what the Sentinels call the master; set: addrs are Sentinels"`
	Cluster          bool          `conf:"cluster" doc:"addrs are nodes of a Redis Cluster"`
	Username         string        `conf:"username" doc:"ACL user"`
	Password         Secret        `conf:"password" doc:"password of the server"`
	SentinelUsername string        `conf:"sentinel_username" doc:"ACL user of the Sentinels"`
	SentinelPassword Secret        `conf:"sentinel_password" doc:"password of the Sentinels"`
	DB               int           `conf:"db" doc:"database number; 0 in a Cluster"`
	TLS              bool          `conf:"tls" doc:"encrypt, and verify the server's certificate against the system's roots"`
	OpTimeout        time.Duration `conf:"op_timeout" doc:"for one operation; beyond it the database is asked"`
	PoolSize         int           `conf:"pool_size" doc:"connections per node; 0: 10 per processor"`
	Pipelining       bool          `conf:"pipelining" doc:"concurrent commands share round trips; off: a connection of the pool for each"`
}

// Cache is how the filter uses its two tiers.
type Cache struct {
	Prefix          string        `conf:"prefix" doc:"what every Redis key begins with"`
	MACKey          Secret        `conf:"mac_key" doc:"key of the receipts' MAC, at least 16 bytes, the same on every gateway; required with redis.addrs"`
	MaxBody         Size          `conf:"max_body" doc:"answers above it are not kept in Redis"`
	ConfirmReceipts bool          `conf:"confirm_receipts" live:"yes" doc:"ask the database before every replay"`
	ProcessTier     bool          `conf:"process_tier" doc:"join requests that this process is deciding, and remember its receipts"`
	LocalEntries    int           `conf:"local_entries" doc:"receipts remembered in the process"`
	LocalBytes      Size          `conf:"local_bytes" doc:"memory for them"`
	LocalTTL        time.Duration `conf:"local_ttl" live:"yes" doc:"how long they are remembered; 0: not at all"`
}

// Breaker stops asking a Redis that does not answer.
type Breaker struct {
	Failures int           `conf:"failures" live:"yes" doc:"failures in a row after which Redis is left alone"`
	OpenFor  time.Duration `conf:"open_for" live:"yes" doc:"how long it is left alone before it is tried again"`
}

// TTL is how long Redis remembers.
type TTL struct {
	InProgress time.Duration `conf:"in_progress" live:"yes" doc:"a mark of a request that is being decided"`
	Receipt    time.Duration `conf:"receipt" live:"yes" doc:"an answer: the window in which replays are cheap"`
}

// Ledger is the group commit.
type Ledger struct {
	Workers  int `conf:"workers" doc:"transactions side by side; the embedded database has one"`
	MaxBatch int `conf:"max_batch" doc:"most requests in one transaction; 1: a transaction per order"`
	MaxRows  int `conf:"max_rows" doc:"most order lines in one transaction; a larger single request gets one of its own"`
	Queue    int `conf:"queue" doc:"requests waiting for one worker; beyond it, or when a request would wait for half of its time, 503 OVERLOADED"`
}

// Idempotency is what clients are held to.
type Idempotency struct {
	Required           bool `conf:"required" live:"yes" doc:"refuse orders without an Idempotency-Key"`
	ReusedStatus       int  `conf:"reused_status" live:"yes" doc:"answer to a key that belongs to another content: 409, or 422 as the IETF draft has it"`
	RememberRejections bool `conf:"remember_rejections" doc:"record business refusals and replay them; false: the key is free again, and no refusal calls a new key safe"`
}

// Limits are per user and gateway.
type Limits struct {
	Rate  float64 `conf:"rate" live:"yes" doc:"new orders per second and user, on average; a batch costs its rows, but limits.burst at most; a cancellation costs one, a replay or a read a tenth; 0: no limit"`
	Burst float64 `conf:"burst" live:"yes" doc:"new orders of a user at once; a larger batch is possible, alone"`
}

// The values of Users.ProvisionBalance that are not amounts.
const (
	ProvisionAuto = "auto"
	ProvisionNone = "none"
	// DemoBalance is what auto means with the embedded database.
	DemoBalance = "1000.00"
)

// Users is what happens to users without an account.
type Users struct {
	ProvisionBalance string `conf:"provision_balance" doc:"open an account with this balance for a user who has none; none: refuse; auto: 1000.00 with the embedded database, none otherwise"`
}

// Retention is how long answers are kept; keys are kept as long as their orders.
type Retention struct {
	Responses    time.Duration `conf:"responses" live:"yes" doc:"how long a replay has the first bytes; after it the answer is made from the order"`
	CompactEvery time.Duration `conf:"compact_every" live:"yes" doc:"how often old answers are emptied in the background; 0: only by 'oncegate compact'"`
}

// Batches are the requests that are carried out later.
type Batches struct {
	AsyncWorkers int           `conf:"async_workers" doc:"workers for batches that were accepted with 'Prefer: respond-async'; 0: none on this gateway"`
	AsyncLease   time.Duration `conf:"async_lease" doc:"how long a worker has for one batch before another takes it over"`
}

// Webhooks are the payment callbacks.
type Webhooks struct {
	Secret         Secret `conf:"secret" doc:"signs payment callbacks (Standard Webhooks: whsec_ and base64); empty: there is no such route"`
	PreviousSecret Secret `conf:"previous_secret" doc:"still accepted, so that the secret can be replaced without a gap"`
}

// Messages are the payment events of a broker.
type Messages struct {
	Broker        string   `conf:"broker" doc:"redis (Streams), kafka or amqp; empty: no messages are read"`
	Addrs         []string `conf:"addrs" doc:"host:port of the Redis or Kafka brokers"`
	Username      string   `conf:"username" doc:"user of a Redis or Kafka broker"`
	Password      Secret   `conf:"password" doc:"password of a Redis or Kafka broker, or the URI of an AMQP broker"`
	TLS           bool     `conf:"tls" doc:"encrypt, and verify the server's certificate against the system's roots"`
	Topic         string   `conf:"topic" doc:"where the events are"`
	ParkedTopic   string   `conf:"parked_topic" doc:"where messages go that can never succeed, with the reason"`
	Group         string   `conf:"group" doc:"shared by all who divide the messages among them"`
	Name          string   `conf:"name" doc:"who deduplicates; must stay the same for as long as messages may come again"`
	Workers       int      `conf:"workers" doc:"messages handled side by side"`
	MaxDeliveries int      `conf:"max_deliveries" doc:"after how many deliveries a message is parked whose order is not there, or which the database refuses"`
}

// Log is the log on stderr.
type Log struct {
	Level  string `conf:"level" live:"yes" doc:"debug, info, warn or error"`
	Format string `conf:"format" doc:"json, text, or auto: text on a terminal"`
}

// Tracing is where spans go. How they are sent is for the standard OTEL_EXPORTER_OTLP_*
// variables to say.
type Tracing struct {
	Endpoint string  `conf:"endpoint" doc:"where spans are sent, as OTLP over HTTP, such as http://collector:4318; empty: no tracing"`
	Sample   float64 `conf:"sample" doc:"share of the requests that are traced, from 0 to 1, whatever a caller's traceparent says"`
}

// EmbeddedDSN says of mysql.dsn that the SQLite file is meant.
const EmbeddedDSN = "embedded"

// EmbeddedDatabase reports whether the database is the SQLite file.
func (c *Config) EmbeddedDatabase() bool {
	return !c.MySQL.DSN.IsSet() || c.MySQL.DSN.Reveal() == EmbeddedDSN
}

// VerifiesTokens reports whether there is something to verify tokens with.
func (c *Config) VerifiesTokens() bool {
	return c.Auth.HS256Secret.IsSet() || c.Auth.JWKSURL != "" || c.EmbeddedDatabase()
}

// ReceiptBound is what ttl.receipt must be longer than, as Validate has it.
func (c *Config) ReceiptBound() time.Duration { return c.TTL.InProgress }

// EmbeddedRedis reports whether Redis runs within the process.
func (c *Config) EmbeddedRedis() bool { return len(c.Redis.Addrs) == 0 }

// Encrypted reports whether the listeners speak TLS.
func (c *Config) Encrypted() bool { return c.TLS.CertFile != "" }

// Provision returns the balance that new users get, and whether they get an
// account at all.
func (c *Config) Provision() (balance string, ok bool) {
	switch c.Users.ProvisionBalance {
	case ProvisionNone:
		return "", false
	case ProvisionAuto:
		return DemoBalance, c.EmbeddedDatabase()
	default:
		return c.Users.ProvisionBalance, true
	}
}
