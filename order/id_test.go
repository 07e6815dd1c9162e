package order_test

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/oncegate/oncegate/order"
)

var idForm = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

func TestNewIDIsUUIDVersion7(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_790_000_000_123)
	for range 1000 {
		id := order.NewID(at)
		require.Equal(t, byte(7), id[6]>>4, "version")
		require.Equal(t, byte(0b10), id[8]>>6, "variant")
		require.False(t, id.IsZero())
		require.True(t, strings.HasPrefix(id.String(), "01a0c450-6c7b-7"), id.String())
	}
	require.True(t, order.ID{}.IsZero())
}

func TestIDsSortByTimeAsBytesAndAsText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		early := rapid.Int64Range(0, 1<<47).Draw(rt, "early")
		late := early + rapid.Int64Range(1, 1<<40).Draw(rt, "later")
		a, b := order.NewID(time.UnixMilli(early)), order.NewID(time.UnixMilli(late))
		require.Negative(rt, bytes.Compare(a[:], b[:]))
		require.Less(rt, a.String(), b.String())
	})
}

func TestIDsOfOneMomentDiffer(t *testing.T) {
	t.Parallel()
	at := time.Now()
	var mu sync.Mutex
	seen := map[order.ID]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				id := order.NewID(at)
				mu.Lock()
				seen[id] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Len(t, seen, 8000)
}

func TestParseIDReadsWhatStringPrints(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var id order.ID
		copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(rt, "bytes"))
		require.Regexp(rt, idForm, id.String())
		require.Equal(rt, "x"+id.String(), string(id.Append([]byte("x"))))
		back, err := order.ParseID(id.String())
		require.NoError(rt, err)
		require.Equal(rt, id, back)
	})
}

func TestParseIDRefusesOtherSpellings(t *testing.T) {
	t.Parallel()
	const id = "01a0c4d0-167b-7abc-8def-0123456789ab"
	_, err := order.ParseID(id)
	require.NoError(t, err)
	for _, text := range []string{
		"", "-", id[1:], id + "0", strings.ToUpper(id), "{" + id + "}", "urn:uuid:" + id, strings.ReplaceAll(id, "-", ""),
		strings.ReplaceAll(id, "-", "_"), " " + id[1:], id[:35] + " ", id[:35] + "g", id[:35] + "-", "g" + id[1:],
		"--a0c4d0-167b-7abc-8def-0123456789ab", "01--c4d0-167b-7abc-8def-0123456789ab", "01a0c4d0-----7abc-8def-0123456789ab",
		"01a0c4d0-167b-7abc-8def--123456789ab", "01a0c4d0-167b-7abc-8def-012345678--b", "------------------------------------",
		id[:34] + "é", "01a0c4d01167b17abc18def10123456789ab",
	} {
		require.NotPanics(t, func() {
			got, err := order.ParseID(text)
			require.Error(t, err, "%q", text)
			require.True(t, got.IsZero(), "%q", text)
		}, "%q", text)
	}
}

func FuzzParseID(f *testing.F) {
	f.Add("01a0c4d0-167b-7abc-8def-0123456789ab")
	f.Add("01A0C4D0-167B-7ABC-8DEF-0123456789AB")
	f.Add("01a0c4d0-167b-7abc-8def--123456789ab")
	f.Add("--a0c4d0-167b-7abc-8def-0123456789ab")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := order.ParseID(s)
		require.Equal(t, idForm.MatchString(s), err == nil, "%q", s)
		if err == nil {
			require.Equal(t, s, id.String())
		} else {
			require.True(t, id.IsZero())
		}
	})
}
