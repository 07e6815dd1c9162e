//go:build unix

package bench

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/loadtest/drive"
)

const replayedAnswer = "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nIdempotent-Replayed: true\r\nContent-Length: 4\r\n\r\n{\"\"}"

func TestAnswerIsReadHoweverItArrives(t *testing.T) {
	t.Parallel()
	var a answer
	for range 2 { // in the same memory
		require.NoError(t, a.read(iotest.OneByteReader(strings.NewReader(replayedAnswer))))
		require.Equal(t, `{""}`, string(a.body))
		require.NoError(t, replayed(&a))
		require.ErrorContains(t, made(&a), "replayed is true")
	}
	long := strings.Repeat("x", 10_000)
	require.NoError(t, a.read(strings.NewReader("HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 10000\r\n\r\n"+long)))
	require.Equal(t, long, string(a.body))
	require.True(t, a.last)
	require.ErrorContains(t, made(&a), "status 503: xxx")
}

func TestAnswerThatIsNoneIsAnError(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                             "receive: EOF",
		replayedAnswer[:20]:            "receive: EOF",
		replayedAnswer[:101]:           "receive: EOF",
		replayedAnswer + "H":           "more than was asked for",
		"SSH-2.0\r\n\r\n":              "not an answer",
		"HTTP/1.1 2x1 OK\r\n\r\n":      "not an answer",
		"HTTP/1.1 201 Created\r\n\r\n": "without a Content-Length",
		"HTTP/1.1 201 Created\r\nContent-Length: -1\r\n\r\n": "Content-Length",
		strings.Repeat("x", 2*maxAnswer):                     "larger than",
	} {
		var a answer
		require.ErrorContains(t, a.read(strings.NewReader(text)), want)
	}
}

func TestEmptyAnswerIsWrong(t *testing.T) {
	t.Parallel()
	require.ErrorIs(t, made(&answer{status: http.StatusCreated}), errEmpty)
}

func TestConnectionIsMadeAnewAfterAFault(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) == 2 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(orderBody)))
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(orderBody))
	}))
	t.Cleanup(server.Close)
	w := newPoster(server.Listener.Addr().String()).worker(t.Context(),
		func() (drive.Identity, string) { return drive.Identity{User: "ann", Token: "Bearer x"}, "k" }, made)
	defer w.close()
	require.NoError(t, w.step(t.Context()))
	require.Error(t, w.step(t.Context()))
	require.NoError(t, w.step(t.Context()))
}
