//go:build linux && seededbugs

package chaos

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// catchTime is how soon a mistake must be noticed.
const catchTime = 2 * time.Minute

// seededBug is a mistake and the test that must notice it.
type seededBug struct {
	flaw    string
	mistake string
	pkg     string // folder of the test
	test    string
	says    string // what the test must complain of
}

func seededBugs() []seededBug {
	return []seededBug{
		{"plain-reread", "an unknown commit is resolved by a plain read", "store", "TestLateCommitIsNeverDenied", "not_committed"},
		{"statement-after-error", "a statement is sent on a failed transaction", "store", "TestHalfATransactionIsNeverCommitted", "order_without_key"},
		{"no-owner-token", "SET NX is sent again, and its owner not known by a token", "cache", "TestReplyLostAfterSetNeitherBlocksTheKeyNorIsResent", "actual  : 0x3"},
		{"release-anybodys", "a mark is released without comparing its token", "cache", "TestExpiredMarkDoesNotTakeTheNextOwnersWithIt", "actual  : 0x1"},
		{"receipt-before-commit", "the receipt is written before the commit", "store", "TestUnresolvedCommitIsCalledUnknown", "created with 0 orders"},
		{"digest-ignored", "the digest is not compared", "order", "TestAReceiptOfAnotherContentIsReused", "actual  : order.Answer{Kind:0x2"},
		{"lock-after-insert", "the user's lock is taken after the insert", "cmd/gateway", "TestNormalFlowHasNoDeadlocks", "oncegate_ledger_faults_total"},
		{"acknowledged-first", "a message is acknowledged before the commit", "consumer", "TestConsumerKilledWithAMessageInHand", "it was not acknowledged"},
		{"expired-key-is-new", "an expired key is treated as new", "store", "TestCompactionKeepsEveryKey", "expected: 0x2"},
	}
}

// noticing are the arguments of a test binary that must fail.
type noticing struct {
	bug  seededBug
	args []string
	env  []string
}

// TestSeededBugsAreCaught runs, with each mistake switched on, the test that
// must notice it, and demands that it fails and says why.
func TestSeededBugsAreCaught(t *testing.T) { //nolint:paralleltest // each has two minutes and this machine to itself
	for _, bug := range seededBugs() {
		t.Run(bug.flaw, func(t *testing.T) { //nolint:paralleltest // as above
			demandNotice(t, noticing{bug: bug, env: []string{flawVariable + "=" + bug.flaw}})
		})
	}
}

// TestTheNemesisNoticesSeededBugs has gateways make a mistake under the faults
// that bring it out, and demands that the histories show it.
func TestTheNemesisNoticesSeededBugs(t *testing.T) { //nolint:paralleltest // as above
	gatewayProgram(t, "seededbugs") // so that the two minutes are not spent on compiling
	const nemesis = "TestNothingIsLostOrDoubledUnderFaults"
	for _, c := range []struct {
		bug    seededBug
		faults string
	}{
		{seededBug{"plain-reread", "an unknown commit is resolved by a plain read", "internal/chaos", nemesis, "not_linearizable"}, "COMMIT"},
		{seededBug{"receipt-before-commit", "the receipt is written before the commit", "internal/chaos", nemesis, "not_linearizable"}, "COMMIT"},
		{seededBug{"digest-ignored", "the digest is not compared", "internal/chaos", nemesis, "foreign_body"}, "redis"},
	} {
		t.Run(c.bug.flaw, func(t *testing.T) { //nolint:paralleltest // as above
			demandNotice(t, noticing{bug: c.bug, args: []string{
				"-engine", "MySQL", "-for", "20s", "-seed", "3", "-only", c.faults, "-flaw", c.bug.flaw,
			}})
		})
	}
}

func demandNotice(t *testing.T, n noticing) {
	t.Helper()
	bug := n.bug
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	tests := filepath.Join(t.TempDir(), "tests")
	compile := exec.Command("go", "test", "-c", "-tags", "seededbugs", "-o", tests, "./"+bug.pkg)
	compile.Dir = root
	out, err := compile.CombinedOutput()
	require.NoError(t, err, string(out))

	ctx, cancel := context.WithTimeout(t.Context(), catchTime)
	defer cancel()
	started := time.Now()
	run := exec.CommandContext(ctx, tests, append([]string{"-test.v", "-test.run", "^" + bug.test + "$", "-test.timeout", catchTime.String()}, n.args...)...)
	run.Dir = filepath.Join(root, bug.pkg)
	run.Env = append(os.Environ(), n.env...)
	out, err = run.CombinedOutput()
	var exit *exec.ExitError
	require.True(t, errors.As(err, &exit), "%s does not notice that %s: %v", bug.test, bug.mistake, err)
	require.NoError(t, ctx.Err(), "not within %v", catchTime)
	require.Contains(t, string(out), "--- FAIL: "+bug.test)
	require.Contains(t, string(out), bug.says)
	t.Logf("%s: noticed by %s after %v", bug.mistake, bug.test, time.Since(started).Round(time.Millisecond))
}
