package store

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/faultproxy"
	"github.com/oncegate/oncegate/order"
)

func TestSettingChangesAreRecordedAndTakenBack(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, dsn string) {
		h := openHarness(t, Options{DSN: dsn})
		version, id, err := h.SettingsVersion(t.Context())
		require.NoError(t, err)
		require.Zero(t, version)
		require.Empty(t, id)
		none, err := h.Overrides(t.Context())
		require.NoError(t, err)
		require.Equal(t, Overrides{Values: map[string]string{}}, none)

		first, err := h.ChangeSetting(t.Context(), 0, SettingChange{
			Name: "ttl.receipt", Value: new("48h0m0s"), Before: "24h0m0s", After: "48h0m0s", Reason: "Ausverkauf, täglich", By: "alice",
		})
		require.NoError(t, err)
		require.EqualValues(t, 1, first.Version)
		require.False(t, first.At.IsZero())
		_, err = h.ChangeSetting(t.Context(), 0, SettingChange{Name: "ttl.receipt", Value: new("1h0m0s")})
		require.ErrorIs(t, err, ErrSettingsVersion, "somebody was faster")
		_, err = h.ChangeSetting(t.Context(), 7, SettingChange{Name: "ttl.receipt", Value: new("1h0m0s")})
		require.ErrorIs(t, err, ErrSettingsVersion, "a version that was never there")

		_, err = h.ChangeSetting(t.Context(), 1, SettingChange{Name: "log.level", Value: new("debug"), Before: "info", After: "debug", Reason: "look", By: "bob"})
		require.NoError(t, err)
		now, err := h.Overrides(t.Context())
		require.NoError(t, err)
		require.Equal(t, map[string]string{"ttl.receipt": "48h0m0s", "log.level": "debug"}, now.Values)
		require.EqualValues(t, 2, now.Version)
		require.Equal(t, "bob", now.By)

		back, err := h.ChangeSetting(t.Context(), 2, SettingChange{Name: "ttl.receipt", Before: "48h0m0s", After: "24h0m0s", Reason: "over", By: "alice"})
		require.NoError(t, err)
		now, err = h.Overrides(t.Context())
		require.NoError(t, err)
		require.Equal(t, Overrides{Version: 3, Values: map[string]string{"log.level": "debug"}, ID: back.ID, By: "alice", At: back.At}, now)
		version, id, err = h.SettingsVersion(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 3, version)
		require.Equal(t, back.ID, id)

		all, err := h.SettingChanges(t.Context(), 10)
		require.NoError(t, err)
		require.Len(t, all, 3)
		require.Equal(t, []SettingChange{back, first}, []SettingChange{all[0], all[2]})
		newest, err := h.SettingChanges(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, []SettingChange{back}, newest)
	})
}

func TestOfChangesAtOnceOneIsRecorded(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, dsn string) {
		gateways := []*harness{openHarness(t, Options{DSN: dsn}), openHarness(t, Options{DSN: dsn})}
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			wg.Go(func() {
				_, errs[i] = gateways[i%2].ChangeSetting(t.Context(), 0, SettingChange{Name: "limits.rate", Value: new(strconv.Itoa(i)), By: "x"})
			})
		}
		wg.Wait()
		recorded := 0
		for _, err := range errs {
			if err == nil {
				recorded++
				continue
			}
			require.ErrorIs(t, err, ErrSettingsVersion)
		}
		require.Equal(t, 1, recorded)
		all, err := gateways[0].SettingChanges(t.Context(), 10)
		require.NoError(t, err)
		require.Len(t, all, 1)
	})
}

// The answer to COMMIT is lost: the change is found to be its own, and is
// neither refused nor recorded twice.
func TestALostCommitOfASettingIsItsOwn(t *testing.T) {
	t.Parallel()
	hasty := func(*Options) {}
	for name, c := range map[string]struct {
		action faultproxy.Action
		limits func(*Options)
	}{
		"AnswerLost":     {faultproxy.Swallow, patient},
		"NeverDelivered": {faultproxy.CutBefore, patient},
		"DeliveredLate":  {faultproxy.DelayForward{For: 2500 * time.Millisecond}, hasty},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onServers(t, func(t *testing.T, dsn string) {
				h, proxy := behindProxy(t, dsn, c.limits)
				proxy.OnQuery(first("COMMIT", c.action))
				change, err := h.ChangeSetting(t.Context(), 0, SettingChange{Name: "limits.rate", Value: new("5"), By: "x"})
				if err != nil { // the old session held its place for longer than the attempts last
					require.ErrorIs(t, err, order.ErrUnavailable)
					require.Equal(t, "DeliveredLate", name)
				} else {
					require.EqualValues(t, 1, change.Version)
				}
				require.Eventually(t, func() bool {
					all, err := h.SettingChanges(t.Context(), 10)
					return err == nil && len(all) == 1
				}, ample, 20*time.Millisecond)
			})
		})
	}
}

func TestSettingsOfADatabaseThatIsAwayAreUnavailable(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, dsn string) {
		h, proxy := behindProxy(t, dsn)
		proxy.Refuse()
		proxy.Cut()
		_, _, err := h.SettingsVersion(t.Context())
		require.ErrorIs(t, err, order.ErrUnavailable)
		_, err = h.Overrides(t.Context())
		require.ErrorIs(t, err, order.ErrUnavailable)
		_, err = h.ChangeSetting(t.Context(), 0, SettingChange{Name: "limits.rate", By: "x"})
		require.ErrorIs(t, err, order.ErrUnavailable)
	})
}
