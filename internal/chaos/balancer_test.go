//go:build linux

package chaos

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/internal/testserver"
)

// balancerVariable makes a process of this binary a balancer: its address, and
// those behind it.
const balancerVariable = "ONCEGATE_TEST_BALANCER"

// balance puts a balancer before the addresses of gateways.
func (w *world) balance(addrs []string) {
	w.t.Helper()
	if !w.ownBalancer {
		w.front = faultproxy.NewBalancer(w.t, addrs).Addr()
		return
	}
	w.front = reserved(w.t)
	var said testserver.Output
	program, err := os.Executable()
	require.NoError(w.t, err)
	cmd := exec.Command(program)
	cmd.Env = append(environment(), balancerVariable+"="+strings.Join(append([]string{w.front}, addrs...), ","))
	cmd.Stdout, cmd.Stderr = &said, &said
	ended, err := startBound(cmd)
	require.NoError(w.t, err)
	over := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-ended:
			w.t.Errorf("the balancer ended, %s: %s", cmd.ProcessState, said.Tail(20))
		case <-over:
			_ = cmd.Process.Kill()
			<-ended
		}
	}()
	w.t.Cleanup(func() {
		close(over)
		<-watched
	})
	require.Eventually(w.t, func() bool {
		conn, err := net.Dial("tcp", w.front)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, readyTime, 20*time.Millisecond, "the balancer listens")
}

// balanceInstead is what such a process does; it returns the exit code.
func balanceInstead(addrs []string) int {
	err := faultproxy.Balance(addrs[0], addrs[1:])
	fmt.Fprintln(os.Stderr, "balancer:", err)
	return 1
}
