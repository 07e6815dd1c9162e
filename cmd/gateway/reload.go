package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/oncegate/oncegate/cache"
	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/order"
	"github.com/oncegate/oncegate/store"
)

// Live is a configuration and how it changes while an App runs.
type Live struct {
	Loaded *configs.Loaded
	// Sources are read again when the file changes. Default: they never are.
	Sources *configs.Sources
	// Hangup asks for the sources to be read again. Default: nobody does.
	Hangup <-chan os.Signal
	// Reloading is told when that begins, and what it returns, when it is over: why
	// the sources were refused, or nothing. Default: nobody is told.
	Reloading func(ctx context.Context) (over func(refusal string))
	// Judged is told why the sources are refused, or nothing once they are not, when
	// that changes and nobody has asked. Default: nobody is told.
	Judged func(ctx context.Context, refusal string)
	// Level of the log follows log.level. Default: nothing does.
	Level *slog.LevelVar
	// LinesLost counts those of the log that nobody took. Default: none is lost.
	LinesLost func() int64
}

// settings is the configuration in force. Whoever uses one that may change
// reads it anew for every use, out of one immutable snapshot; whoever changes
// it makes and validates a whole snapshot first. So a use sees all of a change
// or nothing of it, and a wrong change is never in force.
type settings struct {
	live    Live
	log     *slog.Logger
	current atomic.Pointer[snapshot]
	refused struct{ file, api atomic.Bool } // the newest of the kind is not in force

	mu     sync.Mutex      // one change at a time
	base   *configs.Loaded // what the sources say
	stored settingStore    // nil before the database is open
}

// settingStore is where changes over the admin API are kept for all gateways.
type settingStore interface {
	SettingsVersion(ctx context.Context) (version int64, id string, err error)
	Overrides(ctx context.Context) (store.Overrides, error)
	ChangeSetting(ctx context.Context, on int64, c store.SettingChange) (store.SettingChange, error)
	SettingChanges(ctx context.Context, limit int) ([]store.SettingChange, error)
}

// snapshot is a configuration in force. It never changes.
type snapshot struct {
	loaded  *configs.Loaded
	version int64           // of the changes that are in force
	newest  store.Overrides // that are known; of another version where they were refused
	over    chan struct{}   // closed when another snapshot takes the place
	level   slog.Level      // of the log

	cache cache.Tuning
	order order.Tuning
	http  gateway.Tuning
}

func newSettings(live Live, log *slog.Logger) (*settings, error) {
	if live.Level == nil {
		live.Level = new(slog.LevelVar)
	}
	s := &settings{live: live, log: log, base: live.Loaded}
	if err := s.apply(context.Background(), live.Loaded, store.Overrides{}); err != nil {
		return nil, err
	}
	s.settleLevel()
	return s, nil
}

// now is the configuration in force.
func (s *settings) now() *configs.Config { return &s.current.Load().loaded.Config }

// tunings of the parts, as they are in force.
func (s *settings) cacheTuning() cache.Tuning  { return s.current.Load().cache }
func (s *settings) orderTuning() order.Tuning  { return s.current.Load().order }
func (s *settings) httpTuning() gateway.Tuning { return s.current.Load().http }

// apply puts a configuration in force with changes over it, all of it or
// nothing. The caller tells the log of it, and then settles its level. The lock
// is held, or nobody else knows of s yet.
func (s *settings) apply(ctx context.Context, base *configs.Loaded, changed store.Overrides) error {
	loaded, passed, err := base.Override(changed.Values)
	if err != nil {
		return err
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(loaded.Config.Log.Level)); err != nil {
		return err
	}
	c := &loaded.Config
	s.replace(&snapshot{
		loaded: loaded, version: changed.Version, newest: changed, level: level,
		cache: cacheTuning(c), order: decisionTuning(c), http: httpTuning(c),
	})
	s.base = base
	// A change to a quieter log is still told of.
	s.live.Level.Set(min(level, s.live.Level.Level()))
	if len(passed) > 0 {
		s.log.InfoContext(ctx, "changes over the admin API are passed over here: a file, the environment or a flag gives these settings, or this version does not know them",
			"settings", passed)
	}
	return nil
}

// settleLevel makes the log as quiet as is configured. The lock is held, or
// nobody else knows of s yet.
func (s *settings) settleLevel() { s.live.Level.Set(s.current.Load().level) }

func (s *settings) replace(next *snapshot) {
	next.over = make(chan struct{})
	if old := s.current.Swap(next); old != nil {
		close(old.over)
	}
}

// reload reads the sources again. What is wrong with them is told to the log;
// the configuration in force stays then. That nothing has changed is told at the
// level quiet; what was told already, not again. It returns why the sources were
// refused, if they were.
func (s *settings) reload(ctx context.Context, quiet slog.Level, told string) (refusal string) {
	loaded, err := configs.Load(*s.live.Sources)
	s.mu.Lock()
	defer s.mu.Unlock()
	var changed []string
	if err == nil {
		changed, err = s.rebase(ctx, loaded)
	}
	s.refused.file.Store(err != nil)
	switch {
	case err != nil:
		if refusal = err.Error(); refusal != told {
			s.log.ErrorContext(ctx, "the configuration was read again and refused; the one in force stays", "error", err)
		}
	case len(changed) == 0:
		s.log.Log(ctx, quiet, "the configuration was read again: nothing has changed")
	default:
		s.log.InfoContext(ctx, "the configuration was read again and is in force", "changed", changed)
	}
	s.settleLevel()
	return refusal
}

// rebase puts what the sources say now in force, under the changes over the
// API. The lock is held.
func (s *settings) rebase(ctx context.Context, loaded *configs.Loaded) (changed []string, err error) {
	if _, fixed := configs.Differences(&s.base.Config, &loaded.Config); len(fixed) > 0 {
		return nil, fmt.Errorf("%s: cannot be changed while the gateway runs, restart it", strings.Join(fixed, ", "))
	}
	before := s.current.Load()
	if err := s.apply(ctx, loaded, before.newest); err != nil {
		return nil, err
	}
	s.refused.api.Store(false)
	return moves(before.loaded, s.current.Load().loaded), nil
}

// moves tells of every setting in which two configurations differ what it was and
// what it is. For a change of a file the log is the only trail.
func moves(before, after *configs.Loaded) []string {
	live, _ := configs.Differences(&before.Config, &after.Config)
	told := make([]string, 0, len(live))
	for _, name := range live {
		from, _ := before.Setting(name)
		to, _ := after.Setting(name)
		told = append(told, fmt.Sprintf("%s from %s to %s", name, from.Value, to.Value))
	}
	return told
}

// catchUp takes over the changes that other gateways have recorded.
func (s *settings) catchUp(ctx context.Context) error {
	version, id, err := s.stored.SettingsVersion(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if newest := &s.current.Load().newest; version == newest.Version && id == newest.ID {
		return nil
	}
	return s.refresh(ctx)
}

// refresh reads the changes and puts them in force; where they do not fit to
// this gateway's own configuration, all of them are refused. The lock is held.
func (s *settings) refresh(ctx context.Context) error {
	newest, err := s.stored.Overrides(ctx)
	if err != nil {
		return err
	}
	before := s.current.Load()
	if newest.Version == before.newest.Version && newest.ID == before.newest.ID {
		return nil
	}
	err = s.apply(ctx, s.base, newest)
	s.refused.api.Store(err != nil)
	if err != nil {
		// It is known from now on, so that the next change can be made on it.
		known := *before
		known.newest = newest
		s.replace(&known)
		s.log.ErrorContext(ctx, "changes over the admin API do not fit to this gateway's configuration; the one in force stays",
			"version", newest.Version, "error", err)
		return nil
	}
	s.log.InfoContext(ctx, "changes over the admin API are in force",
		"version", newest.Version, "changed", moves(before.loaded, s.current.Load().loaded), "changed_by", newest.By)
	s.settleLevel()
	return nil
}

// follow opens the stored changes and takes over new ones until the App closes.
func (a *App) followSettings(ctx context.Context, stored settingStore) error {
	a.settings.stored = stored
	if err := a.settings.catchUp(ctx); err != nil {
		return fmt.Errorf("read the changed settings: %w", err)
	}
	a.background("settings", a.settings.followStored)
	if a.settings.live.Sources == nil {
		return nil
	}
	a.background("watch of the configuration", newWatcher(a.settings).run)
	return nil
}
