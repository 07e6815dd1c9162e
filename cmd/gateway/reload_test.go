package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/gateway"
	"github.com/oncegate/oncegate/store"
)

// count is how often the log has a text.
func (l *logged) count(text string) int { return strings.Count(l.String(), text) }

// settingsOf are settings of the given environment, and their log.
func settingsOf(t *testing.T, live Live) (*settings, *logged) {
	t.Helper()
	loaded, err := configs.Load(*live.Sources)
	require.NoError(t, err)
	live.Loaded, live.Level = loaded, new(slog.LevelVar)
	log := &logged{}
	s, err := newSettings(live, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: live.Level})))
	require.NoError(t, err)
	return s, log
}

// recorded is a store that has the given changes.
type recorded struct {
	settingStore
	now store.Overrides
}

func (r *recorded) SettingsVersion(context.Context) (version int64, id string, err error) {
	return r.now.Version, r.now.ID, nil
}

func (r *recorded) Overrides(context.Context) (store.Overrides, error) { return r.now, nil }

// ChangeSetting is for changes that must not get here.
func (r *recorded) ChangeSetting(context.Context, int64, store.SettingChange) (store.SettingChange, error) {
	return store.SettingChange{}, errors.New("it was recorded anew")
}

// A failover to a server that does not have the newest change, and another
// change there, between two looks.
func TestAVersionThatWasGivenTwiceIsFollowed(t *testing.T) {
	t.Parallel()
	s, _ := settingsOf(t, Live{Sources: &configs.Sources{}})
	s.stored = &recorded{now: store.Overrides{Version: 5, ID: "lost", Values: map[string]string{"ttl.receipt": "2h"}}}
	require.NoError(t, s.catchUp(t.Context()))
	require.Equal(t, 2*time.Hour, s.now().TTL.Receipt)
	s.stored = &recorded{now: store.Overrides{Version: 5, ID: "kept", Values: map[string]string{"ttl.receipt": "3h"}}}
	require.NoError(t, s.catchUp(t.Context()))
	require.Equal(t, 3*time.Hour, s.now().TTL.Receipt)
}

// The promise: a change is in force on every gateway within this time.
const everywhereWithin = 5 * time.Second

// followed is a store whose second look is one that the database does not answer.
type followed struct {
	settingStore
	now   atomic.Pointer[store.Overrides]
	looks atomic.Int32
}

func (f *followed) SettingsVersion(ctx context.Context) (version int64, id string, err error) {
	if f.looks.Add(1) == 2 {
		<-ctx.Done()
		return 0, "", ctx.Err()
	}
	return f.now.Load().Version, f.now.Load().ID, nil
}

func (f *followed) Overrides(context.Context) (store.Overrides, error) { return *f.now.Load(), nil }

func TestAChangeIsFollowedWithinFiveSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := settingsOf(t, Live{Sources: &configs.Sources{}})
		changes := &followed{}
		changes.now.Store(&store.Overrides{})
		s.stored = changes
		ctx, stop := context.WithCancel(t.Context())
		go s.followStored(ctx)
		for changes.looks.Load() == 0 {
			<-time.After(time.Millisecond)
		}
		changes.now.Store(&store.Overrides{Version: 1, ID: "one", Values: map[string]string{"ttl.receipt": "2h"}})
		<-time.After(everywhereWithin)
		synctest.Wait()
		require.Equal(t, 2*time.Hour, s.now().TTL.Receipt)
		require.Greater(t, changes.looks.Load(), int32(2), "one look was in vain")
		stop()
		synctest.Wait()
	})
}

// A change in another spelling than today's, as of an earlier version.
func TestTheSameValueInAnotherSpellingIsNoChange(t *testing.T) {
	t.Parallel()
	s, _ := settingsOf(t, Live{Sources: &configs.Sources{}})
	s.stored = &recorded{now: store.Overrides{Version: 3, ID: "three!", Values: map[string]string{"ttl.receipt": "48h0m0s"}}}
	require.NoError(t, s.catchUp(t.Context()))
	for value, recorded := range map[string]bool{"48h": false, "2d": false, "48h0m0s": false, "3d": true, "1d": true} {
		done, err := s.ChangeSetting(t.Context(), gateway.SettingChange{Name: "ttl.receipt", Value: &value, On: tagOf(3, "three!"), Reason: "again"})
		if recorded {
			require.ErrorContains(t, err, "it was recorded anew", value)
			continue
		}
		require.NoError(t, err, value)
		require.Equal(t, int64(3), done.Version, value)
	}
	_, err := s.ChangeSetting(t.Context(), gateway.SettingChange{Name: "ttl.receipt", On: tagOf(3, "three!"), Reason: "back"})
	require.ErrorContains(t, err, "it was recorded anew", "the default is another value")
}

// For a change of a file the log is the only trail.
func TestTheLogTellsWhatASettingWasAndIs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := fileOf(t, dir, receipt2h)
	s, log := settingsOf(t, Live{Sources: &configs.Sources{File: path}})
	fileOf(t, dir, receipt3h)
	s.reload(t.Context(), slog.LevelDebug, "")
	require.True(t, log.has("ttl.receipt from 2h to 3h"), log)
	s.stored = &recorded{now: store.Overrides{Version: 1, Values: map[string]string{"max_wait": "5s"}}}
	require.NoError(t, s.catchUp(t.Context()))
	require.True(t, log.has("max_wait from 10s to 5s"), log)
}

func TestAChangeOfTheLogsLevelIsLogged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const followed, reread, made = "changes over the admin API are in force", "the configuration was read again and is in force", "a setting was changed"
	t.Run("Followed", func(t *testing.T) {
		t.Parallel()
		s, log := settingsOf(t, Live{Sources: &configs.Sources{}})
		for i, level := range []string{"error", "info", "warn"} {
			s.stored = &recorded{now: store.Overrides{Version: int64(i + 1), Values: map[string]string{"log.level": level}}}
			require.NoError(t, s.catchUp(t.Context()))
			require.Equal(t, i+1, log.count(followed), level)
			require.Equal(t, strings.ToUpper(level), s.live.Level.Level().String())
		}
	})
	t.Run("ReadAgain", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(dir, "level.yaml")
		write := func(level string) {
			require.NoError(t, os.WriteFile(path, []byte(yamlOf(dir, "log: {level: "+level+"}")), 0o600))
		}
		write("info")
		s, log := settingsOf(t, Live{Sources: &configs.Sources{File: path}})
		for i, level := range []string{"error", "info", "warn"} {
			write(level)
			s.reload(t.Context(), slog.LevelDebug, "")
			require.Equal(t, i+1, log.count(reread), level)
			require.Equal(t, strings.ToUpper(level), s.live.Level.Level().String())
		}
	})
	t.Run("Made", func(t *testing.T) {
		t.Parallel()
		log := &logged{}
		r := startLive(t, Live{Sources: &configs.Sources{File: fileOf(t, dir, "")}}, log)
		ops := newOperator(t)
		for i, level := range []string{"error", "info", "warn"} {
			ops.change(r, "log.level", `"`+level+`"`)
			require.Equal(t, i+1, log.count(made), level)
		}
	})
}

// A file that did not fit to a change is taken once the change is taken back.
func TestARefusedFileIsTriedWithTheNextChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one := startLive(t, Live{Sources: &configs.Sources{File: fileOf(t, dir, "")}}, t.Output())
	path := filepath.Join(dir, "other.yaml")
	require.NoError(t, os.WriteFile(path, []byte(yamlOf(dir, "")), 0o600))
	log := &logged{}
	other := startLive(t, Live{Sources: &configs.Sources{File: path}}, log)
	ops := newOperator(t)
	refused := func() float64 { return metric(t, other, `oncegate_config_refused{source="file"}`) }

	ops.change(one, "ttl.in_progress", `"7s"`)
	eventually(t, "7s", func() bool { s, _ := ops.setting(other, "ttl.in_progress"); return s.Value == "7s" })
	require.NoError(t, os.WriteFile(path, []byte(yamlOf(dir, "in_progress_grace: 8s")), 0o600))
	eventually(t, "refused", func() bool { return refused() == 1 })
	ops.change(one, "ttl.receipt", `"2h"`)
	eventually(t, "2h", func() bool { s, _ := ops.setting(other, "ttl.receipt"); return s.Value == "2h" })
	ops.change(one, "ttl.in_progress", "null")
	eventually(t, "the file is in force", func() bool {
		s, _ := ops.setting(other, "in_progress_grace")
		return s.Value == "8s" && refused() == 0
	})
	require.Equal(t, 1, log.count("read again and refused"), "told once")
}

// A secret's file that is missing while the configuration is read again.
func TestRefusedSourcesAreTriedNowAndThen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "secret")
	write := func() { require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("s", 32)), 0o600)) }
	write()
	synctest.Test(t, func(t *testing.T) {
		hangup := make(chan os.Signal)
		s, log := settingsOf(t, Live{
			Sources: &configs.Sources{Environ: []string{"ONCEGATE_AUTH__HS256_SECRET_FILE=" + path}}, Hangup: hangup,
		})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go newWatcher(s).run(ctx)
		refusals := func() int { return log.count("read again and refused") }

		require.NoError(t, os.Remove(path))
		hangup <- syscall.SIGHUP
		synctest.Wait()
		require.Equal(t, 1, refusals())
		<-time.After(3 * watchNet)
		require.True(t, s.refused.file.Load())
		require.Equal(t, 1, refusals(), "told once")
		hangup <- syscall.SIGHUP
		synctest.Wait()
		require.Equal(t, 2, refusals(), "whoever asks is answered")
		write()
		<-time.After(watchNet + time.Second)
		synctest.Wait()
		require.False(t, s.refused.file.Load())
		stop()
		synctest.Wait()
	})
}
