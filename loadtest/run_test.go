package loadtest

import (
	"context"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/loadtest/drive"
	"github.com/oncegate/oncegate/loadtest/identity"
	"github.com/oncegate/oncegate/loadtest/pace"
	"github.com/oncegate/oncegate/loadtest/result"
	"github.com/oncegate/oncegate/loadtest/scenario"
	"github.com/oncegate/oncegate/loadtest/stub"
	"github.com/oncegate/oncegate/loadtest/verdict"
)

// patience is that of a customer who is to see a time-out: short, but longer than a busy
// machine stands still, for what comes before the first order has no more of it.
const patience = 5 * time.Second

// configure is a short run against a stub.
func configure(t *testing.T, s *stub.Server, name string) Config {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	target, err := url.Parse(server.URL)
	require.NoError(t, err)
	sc, err := scenario.Load(name)
	require.NoError(t, err)
	issuer := &identity.Issuer{Scope: "orders", Lifetime: time.Hour}
	require.NoError(t, issuer.UseSecret([]byte("secret")))
	users, err := issuer.Make("t", 20, time.Now())
	require.NoError(t, err)
	return Config{
		Run: "t", Version: "test", Target: target, Scenario: sc, Seed: 1,
		Shape: pace.Shape{Rate: 200, Length: time.Second}, Users: users, OwnUsers: true,
		Timeout: time.Minute, Drain: 30 * time.Second, MaxInFlight: 5000, MaxLag: time.Minute,
		Audit: AuditHTTP, AuditTimeout: time.Minute, CheckTime: time.Minute, Dir: t.TempDir(),
	}
}

func perform(t *testing.T, c Config) *result.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r, err := Run(ctx, c)
	require.NoError(t, err)
	return r
}

func TestAServerThatKeepsTheContractPasses(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"unique", "double-click", "client-retry", "reused", "hot-user", "batch", "mixed"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stub.New(stub.Flaws{})
			s.Delay = 3 * time.Millisecond
			c := configure(t, s, name)
			r := perform(t, c)
			require.Empty(t, r.Verdict.Findings.List)
			require.True(t, r.Passed(), r.Valid.Reasons)
			require.Positive(t, r.Verdict.Audit.Acknowledged)
			require.Zero(t, r.Verdict.Linearity.Unknown)
			// What the harness says it sent is what arrived; the audit and the
			// preparation came on top.
			require.LessOrEqual(t, r.Totals.Sent, s.Received())
		})
	}
}

// Whoever starts from the example in the documents must not start with findings.
func TestTheExampleScenarioPasses(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/loadtest.md")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	text, _, _ := strings.Cut(rest, "```")
	s := stub.New(stub.Flaws{})
	c := configure(t, s, "unique")
	c.Scenario, err = scenario.Parse([]byte(text))
	require.NoError(t, err)
	require.NoError(t, c.Scenario.SetRepeatAfter(50*time.Millisecond))
	c.Webhook, c.Shape.Rate = signer(t), 50
	r := perform(t, c)
	require.Empty(t, r.Verdict.Findings.List)
	require.True(t, r.Verdict.Passed)
	require.Positive(t, r.Verdict.Audit.Acknowledged)
}

func TestStormsAndLateRepeatsPass(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"storm", "retry-after-ttl"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stub.New(stub.Flaws{})
			s.Delay = 3 * time.Millisecond
			c := configure(t, s, name)
			c.Shape.Rate = 5
			_ = c.Scenario.SetRepeatAfter(50 * time.Millisecond) // one of them
			_ = c.Scenario.SetCopies(50)                         // has each
			r := perform(t, c)
			require.Empty(t, r.Verdict.Findings.List)
			require.Equal(t, len(s.Orders()), r.Verdict.Audit.Acknowledged)
			require.Len(t, s.Orders(), 5)
		})
	}
}

// The seeded bugs: each must be found, for the right reason.
func TestSeededBugsAreFound(t *testing.T) {
	t.Parallel()
	for name, bug := range map[string]struct {
		flaws    stub.Flaws
		scenario string
		want     []verdict.Kind
	}{
		"a second order after a timeout": {
			stub.Flaws{SecondAfterTimeout: 10},
			"client-retry",
			[]verdict.Kind{verdict.Duplicate, verdict.Stray}, // with a business number, and without one
		},
		"the body of another key": {
			stub.Flaws{ForeignBody: true},
			"double-click",
			[]verdict.Kind{verdict.ForeignBody, verdict.SharedID, verdict.TwoIDs, verdict.Disordered},
		},
		"a forgotten order": {stub.Flaws{Forget: 10}, "unique", []verdict.Kind{verdict.Lost}},
		"created twice": {
			stub.Flaws{CreatedTwice: true},
			"double-click",
			[]verdict.Kind{verdict.TwoIDs, verdict.CreatedTwice, verdict.Disordered},
		},
		"a fresh key called reused": {stub.Flaws{ReusedAtWill: 10}, "unique", []verdict.Kind{verdict.ForbiddenOutcome, verdict.Disordered}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := configure(t, stub.New(bug.flaws), bug.scenario)
			if bug.flaws.SecondAfterTimeout > 0 {
				c.Timeout = patience // it takes one
			}
			r := perform(t, c)
			require.False(t, r.Verdict.Passed)
			for _, want := range bug.want {
				require.Positive(t, r.Verdict.Findings.Counts[want], "%s: %v", want, r.Verdict.Findings.Counts)
			}
		})
	}
}

func TestALostPaymentIsFound(t *testing.T) {
	t.Parallel()
	for _, lose := range []bool{false, true} {
		c := configure(t, stub.New(stub.Flaws{LosePayment: lose}), "callbacks")
		_, err := Run(t.Context(), c)
		require.ErrorContains(t, err, "webhook secret")
		c.Webhook = signer(t)
		r := perform(t, c)
		require.Equal(t, !lose, r.Verdict.Passed, r.Verdict.Findings.List)
		require.Equal(t, lose, r.Verdict.Findings.Counts[verdict.PaymentLost] > 0)
	}
}

func TestAPlantedRowIsFound(t *testing.T) {
	t.Parallel()
	for _, user := range []string{"lt-t-0", "nobody"} { // who sends, and who does not
		s := stub.New(stub.Flaws{})
		c := configure(t, s, "unique")
		issuer := &identity.Issuer{Lifetime: time.Hour}
		require.NoError(t, issuer.UseSecret([]byte("secret")))
		token, err := issuer.Token("nobody", "orders", time.Now())
		require.NoError(t, err)
		c.Users = append(c.Users, drive.Identity{User: "nobody", Token: token})
		c.Scenario.Users.Zipf = 10 // the first users send nearly everything
		plant := sync.OnceFunc(func() {
			s.Plant(stub.Order{User: user, SKU: "tea", Quantity: 1, Amount: "1.00", Status: "PENDING"})
		})
		c.Watch = func(Snapshot) { plant() }
		r := perform(t, c)
		require.Equal(t, map[verdict.Kind]int{verdict.Stray: 1}, r.Verdict.Findings.Counts)
	}
}
