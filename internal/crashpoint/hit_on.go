//go:build crashpoints

package crashpoint

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// The points at which this process dies, and stops; no point has an empty name.
var (
	armed    = Point(os.Getenv(Variable))       //nolint:gochecknoglobals // the environment is read once
	freezing = Point(os.Getenv(FreezeVariable)) //nolint:gochecknoglobals // as above
	frozen   atomic.Bool                        //nolint:gochecknoglobals // a process freezes once
)

// Hit kills or stops the process when it was told to at this point.
func Hit(p Point) {
	if p == armed {
		die()
	}
	if p == freezing && !frozen.Swap(true) {
		freeze()
	}
}

// die kills the process. Nothing of it runs any further: no deferred call, no
// buffer that is written out.
func die() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic("crashpoint: " + err.Error())
	}
	select {} // until the signal arrives
}

// freeze stops the process until somebody sends SIGCONT. Whoever is at the point
// waits for that signal, too: the kernel stops one thread after the other, and
// this one would otherwise be a few steps further when its turn comes.
func freeze() {
	woken := make(chan os.Signal, 1)
	signal.Notify(woken, syscall.SIGCONT)
	defer signal.Stop(woken)
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
		panic("crashpoint: " + err.Error())
	}
	<-woken
}
