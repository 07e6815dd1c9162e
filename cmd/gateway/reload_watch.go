package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settingsPoll and settingsDeadline keep the promise that a change is in force
	// on every gateway within five seconds while the database answers.
	settingsPoll     = time.Second
	settingsDeadline = 2 * time.Second

	// watchSettle is how long the file must stay as it is: whoever writes it may
	// not be done.
	watchSettle = 250 * time.Millisecond
	// watchNet finds what no event told of: network file systems have none, and a
	// directory that was replaced takes its watch along.
	watchNet = 30 * time.Second
)

// followStored takes over what is changed over the admin API of any gateway. A
// database that is away changes nothing.
func (s *settings) followStored(ctx context.Context) {
	ticker := time.NewTicker(settingsPoll)
	defer ticker.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		dctx, cancel := context.WithTimeout(ctx, settingsDeadline)
		err := s.catchUp(dctx)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			s.log.WarnContext(ctx, "changes of the settings cannot be read; those in force stay", "error", err)
		case err == nil && failing:
			s.log.InfoContext(ctx, "changes of the settings can be read again")
		}
		failing = err != nil
	}
}

// watcher reads the configuration again when its file changes, or when it is
// asked to. It watches the file's directory: editors and orchestrators replace
// the file, or a link on the way to it, and a watch of the file itself would
// stay with what was replaced.
type watcher struct {
	s      *settings
	path   string            // empty: no file
	events *fsnotify.Watcher // nil: no file
	found  [sha256.Size]byte // the content at the last event, or zero
	judged [sha256.Size]byte // the content that was read last, or zero
	told   string            // why that was refused, or empty
}

func newWatcher(s *settings) *watcher {
	w := &watcher{s: s, path: s.live.Sources.File}
	if w.path == "" {
		return w
	}
	events, err := fsnotify.NewWatcher()
	if err == nil {
		w.events, err = events, events.Add(filepath.Dir(w.path))
	}
	if err != nil {
		// Not a reason not to take orders: the file is looked at now and then.
		s.log.Warn("the configuration's directory cannot be watched; its file is looked at now and then", "every_ms", watchNet.Milliseconds(), "error", err)
	}
	return w
}

func (w *watcher) run(ctx context.Context) {
	var events <-chan fsnotify.Event
	var errs <-chan error
	if w.events != nil {
		defer func() { _ = w.events.Close() }()
		events, errs = w.events.Events, w.events.Errors
	}
	net := time.NewTicker(watchNet)
	defer net.Stop()
	over := w.s.current.Load().over
	w.look(ctx) // it may have changed between its first reading and the watch
	var settled <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.s.live.Hangup:
			w.asked(ctx)
		case <-over: // what is refused may fit to what is in force now
			over = w.s.current.Load().over
			w.again(ctx)
		case <-net.C:
			w.watchAgain()
			w.again(ctx)
			w.look(ctx)
		case err := <-errs: // events were lost: look
			w.s.log.WarnContext(ctx, "the watch of the configuration's directory failed", "error", err)
			settled = soon(settled)
		case <-events:
			settled = soon(settled)
		case <-settled:
			settled = nil
			// Half a file may be a valid configuration: it is read once it stays.
			if digest, _ := w.digest(); digest != w.found {
				w.found, settled = digest, soon(nil)
			} else {
				w.look(ctx)
			}
		}
	}
}

// asked reads the configuration because somebody wants it to, who may be waiting
// to hear that it was.
func (w *watcher) asked(ctx context.Context) {
	over := func(string) {}
	if w.s.live.Reloading != nil {
		over = w.s.live.Reloading(ctx)
	}
	w.judged, _ = w.digest()
	w.told = w.s.reload(ctx, slog.LevelInfo, "")
	over(w.told)
}

// soon starts the time that a change has to settle. It does not begin anew with
// every event: a directory that is always written to must not hold it off.
func soon(settled <-chan time.Time) <-chan time.Time {
	if settled == nil {
		return time.After(watchSettle)
	}
	return settled
}

// watchAgain watches the directory that is there now.
func (w *watcher) watchAgain() {
	if w.events != nil {
		_ = w.events.Add(filepath.Dir(w.path)) // it may be gone; the file is looked at anyway
	}
}

// look reads the configuration again if the file's content is another one.
func (w *watcher) look(ctx context.Context) {
	if w.path == "" {
		return
	}
	digest, err := w.digest()
	if err == nil && digest == w.judged {
		return
	}
	if err != nil && w.judged == digest && w.s.refused.file.Load() {
		return // still not there, and said so
	}
	w.judged = digest
	w.read(ctx, "")
}

// again reads what is refused once more: it may have been wrong only together
// with something else, a changed setting or a file that was missing.
func (w *watcher) again(ctx context.Context) {
	if !w.s.refused.file.Load() {
		return
	}
	if digest, _ := w.digest(); digest == w.judged { // another content is for look
		w.read(ctx, w.told)
	}
}

// read reads the configuration again without being asked; what was told already is
// not told again.
func (w *watcher) read(ctx context.Context, told string) {
	before := w.told
	w.told = w.s.reload(ctx, slog.LevelDebug, told)
	if w.told != before && w.s.live.Judged != nil {
		w.s.live.Judged(ctx, w.told)
	}
}

// digest is that of the file's content; zero with an error.
func (w *watcher) digest() ([sha256.Size]byte, error) {
	content, err := os.ReadFile(w.path)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("read the configuration: %w", err)
	}
	return sha256.Sum256(content), nil
}
