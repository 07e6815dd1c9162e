//go:build linux

package chaos

import (
	"errors"
	"syscall"
)

func gatewayFaults() []fault {
	return []fault{
		{"gateway killed", inGateway, func(w *world, e event) func() {
			g := w.sites[e.site]
			g.kill()
			return g.startAgain
		}},
		{"gateway frozen", inGateway, func(w *world, e event) func() {
			g := w.sites[e.site]
			g.signal(syscall.SIGSTOP)
			return func() { g.signal(syscall.SIGCONT) }
		}},
		{"gateway stopped", inGateway, func(w *world, e event) func() {
			g := w.sites[e.site]
			g.signal(syscall.SIGTERM)
			return func() {
				if err := g.awaitEnd(); killedItself(err) || errors.Is(err, errNoEnd) {
					w.t.Errorf("a gateway that was asked to stop: %v", err)
				}
				g.startAgain()
			}
		}},
		{"all gateways killed", inGateway, func(w *world, _ event) func() {
			for _, s := range w.sites {
				s.kill()
			}
			return w.revive
		}},
		{"gateway clock jumping", inGateway, func(w *world, e event) func() { return w.jumping(e, w.sites[e.site:e.site+1]) }},
	}
}

// startAgain starts it at its address, unless somebody has.
func (g *gateway) startAgain() {
	if !g.running() {
		g.start()
	}
}
