package testserver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Network is a network namespace: what runs in it reaches no more than its links
// lead to. It ends with the test.
type Network struct {
	Links []*Link

	tb     testing.TB
	holder int // the process whose namespace it is
}

// Link is a pair of interfaces with addresses that nobody else has.
type Link struct {
	Near string // address on this side
	Far  string // in the network

	name    string
	network *Network
}

// NewNetwork makes a network with so many links. Where that is not permitted the
// test ends as [Demand] says.
func NewNetwork(tb testing.TB, links int) *Network {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 5*time.Minute)
	defer cancel()
	Demand(tb, networks(ctx))
	n := &Network{tb: tb}
	n.open()
	n.do("ip link set lo up", true)
	for range links {
		n.link()
	}
	return n
}

// networks reports why no network can be made.
func networks(ctx context.Context) error {
	if out, err := exec.CommandContext(ctx, "unshare", "--net", "true").CombinedOutput(); err != nil {
		return fmt.Errorf("a network namespace: %w: %w %s", ErrForbidden, err, out)
	}
	err := InstallPackages(ctx, func() bool {
		_, err := exec.LookPath("ip")
		return err == nil
	}, "iproute2")
	if err != nil {
		return fmt.Errorf("a network namespace: %w", err)
	}
	return nil
}

// open starts the process whose namespace it is, and waits until it has left ours.
func (n *Network) open() {
	n.tb.Helper()
	holder := exec.CommandContext(context.WithoutCancel(n.tb.Context()), "unshare", "--net", "sleep", "infinity")
	// An interrupt at the terminal is the test process's to handle.
	holder.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(holder.SysProcAttr, syscall.SIGKILL)
	if err := servers.launcher.start(holder.Start); err != nil {
		n.tb.Fatalf("testserver: network: %v", err)
	}
	n.tb.Cleanup(func() {
		_ = holder.Process.Kill()
		_ = holder.Wait() // it was killed
	})
	n.holder = holder.Process.Pid
	ours, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		n.tb.Fatalf("testserver: network: %v", err)
	}
	ctx, cancel := context.WithTimeout(n.tb.Context(), operationTimeout)
	defer cancel()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		if theirs, err := os.Readlink(n.namespace()); err == nil && theirs != ours {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			n.tb.Fatal("testserver: no network namespace came to be")
		}
	}
}

func (n *Network) namespace() string { return fmt.Sprintf("/proc/%d/ns/net", n.holder) }

// link adds a link. Its addresses are of a range for measurements.
func (n *Network) link() {
	n.tb.Helper()
	draw, subnet := n.drawSubnet()
	l := &Link{Near: subnet + "1", Far: subnet + "2", name: fmt.Sprintf("og%d", draw), network: n}
	n.do(fmt.Sprintf("ip link add %s type veth peer name %[1]s netns %d", l.name, n.holder), false)
	n.tb.Cleanup(func() { _ = exec.CommandContext(context.Background(), "ip", "link", "del", l.name).Run() }) // it may have gone with the namespace
	for _, end := range []struct {
		addr   string
		inside bool
	}{{l.Near, false}, {l.Far, true}} {
		n.do(fmt.Sprintf("ip addr add %s/24 dev %s", end.addr, l.name), end.inside)
		n.do(fmt.Sprintf("ip link set %s up", l.name), end.inside)
	}
	n.Links = append(n.Links, l)
}

// drawSubnet draws one that no other link has, and a number for its name.
func (n *Network) drawSubnet() (draw uint32, subnet string) {
	n.tb.Helper()
	taken, err := net.InterfaceAddrs()
	if err != nil {
		n.tb.Fatalf("testserver: network: %v", err)
	}
	for {
		draw = rand.Uint32N(1 << 16) //nolint:gosec // G404: a name, no secret
		subnet = fmt.Sprintf("198.%d.%d.", 18+draw>>8%2, draw%256)
		if !slices.ContainsFunc(taken, func(a net.Addr) bool { return strings.HasPrefix(a.String(), subnet) }) {
			return draw, subnet
		}
	}
}

// Inside is the command that runs another in the network.
func (n *Network) Inside() []string {
	return []string{"nsenter", "--target", strconv.Itoa(n.holder), "--net"}
}

// do runs a command, here or inside; it reports by Errorf.
func (n *Network) do(command string, inside bool) {
	n.tb.Helper()
	line := strings.Fields(command)
	if inside {
		line = append(n.Inside(), line...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), operationTimeout)
	defer cancel()
	if err := run(exec.CommandContext(ctx, line[0], line[1:]...)); err != nil {
		n.tb.Errorf("testserver: network: %v", err)
	}
}

// within calls f on a thread that is in the network meanwhile.
func (n *Network) within(f func() error) error {
	ours, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return fmt.Errorf("network: %w", err)
	}
	defer func() { _ = ours.Close() }() // only read
	theirs, err := os.Open(n.namespace())
	if err != nil {
		return fmt.Errorf("network: %w", err)
	}
	defer func() { _ = theirs.Close() }() // only read
	if err := unix.Setns(int(theirs.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter the network: %w", err)
	}
	return errors.Join(f(), unix.Setns(int(ours.Fd()), unix.CLONE_NEWNET))
}

// Cut takes the link down at its far end: what is sent from here is lost. Taken
// down at this end, it would lose its route, and packets would leave the machine by
// another one.
func (l *Link) Cut() (mend func()) {
	n := l.network
	n.do("ip link set "+l.name+" down", true)
	route, err := exec.CommandContext(n.tb.Context(), "ip", "route", "get", l.Far).Output()
	if err != nil || !strings.Contains(string(route), "dev "+l.name+" ") {
		n.tb.Errorf("testserver: packets to a network that is cut off go elsewhere: %v %s", err, route)
	}
	return func() { n.do("ip link set "+l.name+" up", true) }
}

// Mute loses what is sent from this side; what comes from the other arrives.
func (l *Link) Mute() (mend func()) { return l.lose(l.Far, false) }

// Deafen loses what is sent from the network; what is sent from here arrives.
func (l *Link) Deafen() (mend func()) { return l.lose(l.Near, true) }

// Silence loses what is sent from both sides, and tells neither.
func (l *Link) Silence() (mend func()) {
	hear, speak := l.Deafen(), l.Mute()
	return func() {
		speak()
		hear()
	}
}

// nobody is the hardware address of no interface: what is sent to it is lost, and
// its sender is not told.
const nobody = "02:00:00:00:00:99"

func (l *Link) lose(to string, inside bool) (mend func()) {
	l.network.do(fmt.Sprintf("ip neigh replace %s lladdr %s dev %s nud permanent", to, nobody, l.name), inside)
	return func() { l.network.do(fmt.Sprintf("ip neigh del %s dev %s", to, l.name), inside) }
}

// StartMySQLNodeAt starts a MySQL as [StartMySQLNode] does, in the network at the
// far end of a link, by which its Addr leads to it. It listens at all addresses of
// that network.
func StartMySQLNodeAt(tb testing.TB, l *Link, args ...string) *SQLServer {
	tb.Helper()
	s, err := servers.startSQL(tb.Context(), mysqlEngine(), args, l.place)
	Demand(tb, err)
	s.belongTo(tb)
	return s
}

// place moves a server that is not started yet into the network.
func (l *Link) place(_ context.Context, p *process) error {
	p.host, p.within = l.Far, l.network.within
	p.args = append(p.args, "--bind-address=*")
	initial := rootAt("127.0.0.1") + rootAt(l.Near)
	if err := os.WriteFile(filepath.Join(p.dir.path, "init.sql"), []byte(initial), 0o600); err != nil {
		return fmt.Errorf("initial statements: %w", err)
	}
	return nil
}
