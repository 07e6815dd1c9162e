//go:build linux

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/testserver"
)

// network is a network namespace with two links to this one: over the front come
// its customers, over the back it reaches its servers. It ends with the test.
type network struct {
	t           *testing.T
	holder      int // the process whose namespace it is
	front, back link
}

// link is a pair of interfaces: near here, far in the namespace.
type link struct {
	name, near, far string
}

// newNetwork makes one. Where that is not permitted the test ends as
// [testserver.Demand] says.
func newNetwork(t *testing.T) *network {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	testserver.Demand(t, networks(ctx))
	holder := exec.Command("unshare", "--net", "sleep", "infinity")
	ended, err := startBound(holder)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = holder.Process.Kill()
		<-ended
	})
	n := &network{t: t, holder: holder.Process.Pid}
	n.await()
	// Names and addresses that nobody else has: those of a range for measurements.
	draw := rand.Uint32N(1 << 16)
	n.front = link{name: fmt.Sprintf("ogf%d", draw), near: address(draw, 1), far: address(draw, 2)}
	n.back = link{name: fmt.Sprintf("ogb%d", draw), near: address(draw, 129), far: address(draw, 130)}
	n.here("ip link set lo up", n.inside)
	for _, l := range []link{n.front, n.back} {
		n.here(fmt.Sprintf("ip link add %s type veth peer name %[1]s netns %d", l.name, n.holder), nil)
		t.Cleanup(func() { _ = exec.Command("ip", "link", "del", l.name).Run() }) // it may have gone with the namespace
		n.here(fmt.Sprintf("ip addr add %s/25 dev %s", l.near, l.name), nil)
		n.here(fmt.Sprintf("ip link set %s up", l.name), nil)
		n.here(fmt.Sprintf("ip addr add %s/25 dev %s", l.far, l.name), n.inside)
		n.here(fmt.Sprintf("ip link set %s up", l.name), n.inside)
	}
	return n
}

// networks reports why no network can be made.
func networks(ctx context.Context) error {
	if out, err := exec.CommandContext(ctx, "unshare", "--net", "true").CombinedOutput(); err != nil {
		return fmt.Errorf("a network namespace: %w: %w %s", testserver.ErrForbidden, err, out)
	}
	err := testserver.InstallPackages(ctx, func() bool {
		_, err := exec.LookPath("ip")
		return err == nil
	}, "iproute2")
	if err != nil {
		return fmt.Errorf("a network namespace: %w", err)
	}
	return nil
}

func address(draw uint32, host int) string {
	return fmt.Sprintf("198.%d.%d.%d", 18+draw>>8%2, draw%256, host)
}

// await waits until the holder has left this namespace.
func (n *network) await() {
	ours, err := os.Readlink("/proc/self/ns/net")
	require.NoError(n.t, err)
	ctx, cancel := context.WithTimeout(n.t.Context(), readyTime)
	defer cancel()
	for tick := every(ctx, 5*time.Millisecond); tick(); {
		if theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", n.holder)); err == nil && theirs != ours {
			return
		}
	}
	n.t.Fatal("no network namespace came to be")
}

// inside is the command that runs another in the namespace.
func (n *network) inside() []string {
	return []string{"nsenter", "--target", strconv.Itoa(n.holder), "--net"}
}

// here runs a command; where is nil for this namespace.
func (n *network) here(command string, where func() []string) {
	n.t.Helper()
	line := strings.Fields(command)
	if where != nil {
		line = append(where(), line...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyTime)
	defer cancel()
	if out, err := exec.CommandContext(ctx, line[0], line[1:]...).CombinedOutput(); err != nil {
		n.t.Errorf("%s: %v %s", strings.Join(line, " "), err, out)
	}
}

// cut takes a link down at its far end: what is sent from here is lost. Taken down
// at this end, it would lose its route, and packets would leave the machine by
// another one.
func (n *network) cut(l link) (mend func()) {
	n.here("ip link set "+l.name+" down", n.inside)
	route, err := exec.CommandContext(n.t.Context(), "ip", "route", "get", l.far).Output()
	if err != nil || !strings.Contains(string(route), "dev "+l.name+" ") {
		n.t.Errorf("packets to a network that is cut off go elsewhere: %v %s", err, route)
	}
	return func() { n.here("ip link set "+l.name+" up", n.inside) }
}

// nobody is the hardware address of no interface: what is sent to it is lost, and
// its sender is not told.
const nobody = "02:00:00:00:00:99"

// mute loses what is sent from this side of a link; what comes from the other
// arrives.
func (n *network) mute(l link) (mend func()) { return n.lose(l, l.far, nil) }

// deafen loses what is sent from the namespace.
func (n *network) deafen(l link) (mend func()) { return n.lose(l, l.near, n.inside) }

func (n *network) lose(l link, to string, where func() []string) (mend func()) {
	n.here(fmt.Sprintf("ip neigh replace %s lladdr %s dev %s nud permanent", to, nobody, l.name), where)
	return func() { n.here(fmt.Sprintf("ip neigh del %s dev %s", to, l.name), where) }
}
