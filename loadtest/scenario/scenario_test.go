package scenario

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBuiltinScenariosAreComplete(t *testing.T) {
	t.Parallel()
	all, err := Builtin()
	require.NoError(t, err)
	names := map[string]bool{}
	for _, s := range all {
		names[s.Name] = true
		require.NotEmpty(t, s.Description, s.Name)
	}
	for _, want := range []string{"unique", "double-click", "client-retry", "retry-after-ttl", "storm", "reused", "hot-user", "batch", "callbacks", "mixed"} {
		require.True(t, names[want], want)
	}
}

func TestIntentsAreReproducible(t *testing.T) {
	t.Parallel()
	s, err := Load(Default)
	require.NoError(t, err)
	a, b := NewSource(s, "r", 42, 100), NewSource(s, "r", 42, 100)
	other := NewSource(s, "r", 43, 100)
	differs := 0
	keys := map[string]bool{}
	for n := range uint64(2000) {
		x := a.Intent(n)
		require.Equal(t, x, b.Intent(n))
		require.Equal(t, x.Backoff(0, 3), b.Intent(n).Backoff(0, 3))
		require.False(t, keys[x.Key], "a key is used by two intents")
		keys[x.Key] = true
		require.Less(t, x.User, 100)
		if x.Key != other.Intent(n).Key {
			differs++
		}
	}
	require.Equal(t, 2000, differs)
}

func TestSharesAreKept(t *testing.T) {
	t.Parallel()
	s, err := Load(Default)
	require.NoError(t, err)
	src := NewSource(s, "r", 1, 1000)
	count := map[string]int{}
	for n := range uint64(20_000) {
		count[src.Intent(n).Behaviour.Name]++
	}
	require.InDelta(t, 14_800, count["order"], 400)
	require.InDelta(t, 1_600, count["double-click"], 250)
	require.InDelta(t, 200, count["key-reused"], 80)
}

func TestHotUserTakesMostOfIt(t *testing.T) {
	t.Parallel()
	s, err := Load("hot-user")
	require.NoError(t, err)
	src := NewSource(s, "r", 1, 1000)
	count := map[int]int{}
	for n := range uint64(10_000) {
		count[src.Intent(n).User]++
	}
	require.Greater(t, count[0], 1500)
}

func TestBackoffGrowsToItsCap(t *testing.T) {
	t.Parallel()
	it := &Intent{Behaviour: &Behaviour{Retry: Retry{Attempts: 9, Base: 100 * time.Millisecond, Cap: 300 * time.Millisecond}}}
	for attempt := 2; attempt < 9; attempt++ {
		require.Less(t, it.Backoff(0, attempt), 300*time.Millisecond)
	}
	require.Less(t, it.Backoff(0, 2), 100*time.Millisecond)
}

func TestWrongScenariosAreRefused(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty":             ``,
		"unknown member":    "name: x\nbehaviors: []",
		"no behaviour":      "name: x",
		"no share":          "name: x\nbehaviours: [{name: a}]",
		"same name":         "name: x\nbehaviours: [{name: a, share: 1}, {name: a, share: 1}]",
		"unknown outcome":   "name: x\nbehaviours: [{name: a, share: 1, forbidden: [creatd]}]",
		"unknown endpoint":  "name: x\nbehaviours: [{name: a, share: 1, endpoint: order}]",
		"rows of one order": "name: x\nbehaviours: [{name: a, share: 1, rows: {min: 1, max: 2}}]",
		"retry no base":     "name: x\nbehaviours: [{name: a, share: 1, retry: {attempts: 3}}]",
		"zipf":              "name: x\nusers: {zipf: 0.5}\nbehaviours: [{name: a, share: 1}]",
		"half a user":       "name: x\nusers: {count: 1.5}\nbehaviours: [{name: a, share: 1}]",
		"half a copy":       "name: x\nbehaviours: [{name: a, share: 1, copies: {min: &m 1.9, max: *m}}]",
		"half an attempt":   "name: x\nbehaviours: [{name: a, share: 1, retry: {attempts: 2.5, base: 1s, cap: 1s}}]",
		"half a callback":   "name: x\nbehaviours: [{name: a, share: 1, callback: {copies: 1.5}}]",
		"a time without s":  "name: x\nbehaviours: [{name: a, share: 1, copies: {min: 1, max: 2, within: 300}}]",
		"no right answer":   "name: x\nbehaviours: [{name: a, share: 1, other_body: after, forbidden: [reused]}]",
		"two documents":     "name: x\nbehaviours: [{name: a, share: 1}]\n---\nname: y",
	} {
		_, err := Parse([]byte(text))
		require.Error(t, err, name)
	}
	_, err := Load("mixd")
	require.ErrorContains(t, err, "mixd")
	path := filepath.Join(t.TempDir(), "empty.yaml")
	_, err = Load(path)
	require.ErrorContains(t, err, path)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	_, err = Load(path)
	require.ErrorContains(t, err, path+": scenario: there is nothing in it")
}

func TestWhatIsSetIsCheckedAsWell(t *testing.T) {
	t.Parallel()
	storm, err := Load("storm")
	require.NoError(t, err)
	require.NoError(t, storm.SetCopies(7))
	require.Equal(t, Range{7, 7}, storm.Behaviours[0].Copies.Range)
	require.ErrorContains(t, storm.SetCopies(maxCopies+1), "copies must be")
	require.ErrorContains(t, storm.SetCopies(-1), "copies must be")
	late, err := Load("retry-after-ttl")
	require.NoError(t, err)
	require.NoError(t, late.SetRepeatAfter(time.Minute))
	require.Equal(t, time.Minute, late.Behaviours[0].Repeat.After)
	require.ErrorContains(t, late.SetRepeatAfter(25*time.Hour), "repeat needs")
	unique, err := Load("unique")
	require.NoError(t, err)
	require.Error(t, unique.SetCopies(2), "nothing has copies")
	require.Error(t, unique.SetRepeatAfter(time.Second), "nothing repeats")
	require.NoError(t, unique.SetUsers(3))
	require.ErrorContains(t, unique.SetUsers(-5), "users.count")
	require.ErrorContains(t, unique.SetUsers(maxUsers+1), "users.count")
}

// The seeds are short on purpose: Go makes every input that it keeps smaller, in
// a number of tries that grows with the square of its length.
func FuzzParse(f *testing.F) {
	for _, member := range []string{
		"", "endpoint: alias", "endpoint: batch, rows: {min: 2, max: 9}", "copies: {min: 2, max: 9, within: 1s}",
		"hang_up: {share: .5, after: 9ms}", "retry: {attempts: 3, base: 1ms, cap: 9s}", "repeat: {times: 1, after: 1m}",
		"other_body: after", "status: true", "callback: {copies: 3}", "forbidden: [created]",
	} {
		f.Add([]byte("{name: x, behaviours: [{name: a, share: 1, " + member + "}]}"))
	}
	f.Add([]byte("name: x\nusers: {count: 9, zipf: 1.1}\nbehaviours:\n- {name: a, share: 1}\n- {name: b, share: 9}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		for n := range uint64(3) {
			it := NewSource(s, "r", 1, s.Users.Count).Intent(n)
			b := it.Behaviour
			require.Less(t, it.User, s.Users.Count)
			require.GreaterOrEqual(t, it.User, 0)
			require.True(t, Range{len(it.Copies), len(it.Copies)}.within(b.Copies.Min, b.Copies.Max))
			require.Zero(t, it.Copies[0])
			require.LessOrEqual(t, it.HangUp, b.HangUp.After)
			require.True(t, b.Endpoint == Batch && len(it.Lines) >= b.Rows.Min && len(it.Lines) <= b.Rows.Max || len(it.Lines) == 1)
			require.LessOrEqual(t, it.Backoff(0, b.Retry.Attempts), b.Retry.Cap)
			require.Equal(t, b.OtherBody != "", it.Other != nil)
		}
	})
}
