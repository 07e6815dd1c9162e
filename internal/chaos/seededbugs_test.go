//go:build linux && seededbugs

package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// catchTime is how soon a mistake must be noticed. Of the nemesis it is the time
	// of its faults, in runs of huntFor: how long the machine takes beside them does
	// not count.
	catchTime = 2 * time.Minute
	huntFor   = 20 * time.Second
	// tooLong is a run that hangs.
	tooLong = 10 * time.Minute
)

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

// TestSeededBugsAreCaught runs, with each mistake switched on, the test that
// must notice it, and demands that it fails and says why. One that a busy machine
// lets slip by is run again until the time is over.
func TestSeededBugsAreCaught(t *testing.T) { //nolint:paralleltest // each has two minutes and this machine to itself
	for _, bug := range seededBugs() { //nolint:paralleltest // as above
		t.Run(bug.flaw, func(t *testing.T) {
			h := startHunt(t, bug)
			for tries := 1; ; tries++ {
				if h.noticed(time.Until(h.started.Add(catchTime)), nil, flawVariable+"="+bug.flaw) {
					h.report(fmt.Sprintf(", run %d times,", tries))
					return
				}
			}
		})
	}
}

// TestTheNemesisNoticesSeededBugs has gateways make a mistake under the faults
// that bring it out, and demands that the histories show it. What a run brings
// out hangs on how its requests fall together: another seed is tried until the
// time is over.
func TestTheNemesisNoticesSeededBugs(t *testing.T) { //nolint:paralleltest // as above
	gatewayProgram(t, "seededbugs") // so that the two minutes are not spent on compiling
	const nemesis = "TestNothingIsLostOrDoubledUnderFaults"
	for _, c := range []struct { //nolint:paralleltest // as above
		bug    seededBug
		faults string
	}{
		{seededBug{"plain-reread", "an unknown commit is resolved by a plain read", "internal/chaos", nemesis, "not_linearizable"}, "COMMIT"},
		{seededBug{"receipt-before-commit", "the receipt is written before the commit", "internal/chaos", nemesis, "not_linearizable"}, "COMMIT"},
		{seededBug{"digest-ignored", "the digest is not compared", "internal/chaos", nemesis, "foreign_body"}, "redis"},
	} {
		t.Run(c.bug.flaw, func(t *testing.T) {
			h := startHunt(t, c.bug)
			for run := range int(catchTime / huntFor) {
				drawn := strconv.Itoa(3 + run)
				if h.noticed(tooLong, []string{"-engine", "MySQL", "-for", huntFor.String(), "-seed", drawn, "-only", c.faults, "-flaw", c.bug.flaw}) {
					h.report(" with seed " + drawn)
					return
				}
				t.Logf("%s: seed %s does not bring it out", c.bug.mistake, drawn)
			}
			require.Fail(t, "no seed brings it out", "%s:\n%s", c.bug.mistake, h.said)
		})
	}
}

// hunt is the search for one mistake, for catchTime.
type hunt struct {
	t       *testing.T
	bug     seededBug
	tests   string // the compiled tests of its package
	started time.Time
	said    string // by the last run
}

// startHunt compiles the tests, and then the time begins.
func startHunt(t *testing.T, bug seededBug) *hunt {
	t.Helper()
	tests := filepath.Join(t.TempDir(), "tests")
	compile := exec.CommandContext(t.Context(), "go", "test", "-c", "-tags", "seededbugs", "-o", tests, "./"+bug.pkg)
	compile.Dir = "../.."
	out, err := compile.CombinedOutput()
	require.NoError(t, err, string(out))
	return &hunt{t: t, bug: bug, tests: tests, started: time.Now()}
}

// noticed runs the test, and reports whether it fails and says why; it must end
// before the time is over.
func (h *hunt) noticed(left time.Duration, args []string, env ...string) bool {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), left)
	defer cancel()
	run := exec.CommandContext(ctx, h.tests, append([]string{"-test.v", "-test.run", "^" + h.bug.test + "$"}, args...)...)
	run.Dir = filepath.Join("../..", h.bug.pkg)
	run.Env = append(os.Environ(), env...)
	run.WaitDelay = 10 * time.Second // a server of a killed test may hold its output
	out, err := run.CombinedOutput()
	require.NoError(h.t, ctx.Err(), "%s does not notice in time that %s; before it said:\n%s", h.bug.test, h.bug.mistake, h.said)
	h.said = string(out)
	var exit *exec.ExitError
	return errors.As(err, &exit) && strings.Contains(h.said, "--- FAIL: "+h.bug.test) && strings.Contains(h.said, h.bug.says)
}

func (h *hunt) report(how string) {
	h.t.Helper()
	h.t.Logf("%s: noticed by %s%s after %v", h.bug.mistake, h.bug.test, how, time.Since(h.started).Round(time.Millisecond))
}
