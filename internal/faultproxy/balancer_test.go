package faultproxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
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
	for n := range 3 {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, n) }))
		t.Cleanup(s.Close)
		backends = append(backends, s.Listener.Addr().String())
		if n == 1 {
			s.Close()
		}
	}
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
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	_, err = ask(t, NewBalancer(t, []string{l.Addr().String()}))
	require.Error(t, err)
}
