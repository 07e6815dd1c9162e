package faultproxy

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/internal/loopback"
)

// ask fetches the page of whoever answers on a connection of its own.
func ask(t *testing.T, b *Balancer) (string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+b.Addr(), http.NoBody)
	require.NoError(t, err)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return "", err
	}
	defer func() { require.NoError(t, resp.Body.Close()) }()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func TestConnectionsGoToAllThatDoNotRefuse(t *testing.T) {
	t.Parallel()
	var backends []string
	for n := range 2 {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, n) }))
		t.Cleanup(s.Close)
		backends = append(backends, s.Listener.Addr().String())
	}
	backends = slices.Insert(backends, 1, refusing(t))
	b := NewBalancer(t, backends)
	seen := map[string]int{}
	for range 6 {
		who, err := ask(t, b)
		require.NoError(t, err)
		seen[who]++
	}
	require.Len(t, seen, 2, "the second one refuses")
}

func TestAConnectionIsClosedWhenAllRefuse(t *testing.T) {
	t.Parallel()
	_, err := ask(t, NewBalancer(t, []string{refusing(t)}))
	require.Error(t, err)
}

// refusing is an address at which nobody listens, nor will.
func refusing(t *testing.T) string {
	t.Helper()
	port, err := loopback.Reserve()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, port.Release()) })
	return port.Addr()
}
