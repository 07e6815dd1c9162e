package gateway

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

// aboutToFail is an exchange that has its place and is about to be refused.
func aboutToFail(ctx context.Context, t *testing.T) (*exchange, *httptest.ResponseRecorder) {
	t.Helper()
	metrics, err := NewMetrics(prometheus.NewRegistry())
	require.NoError(t, err)
	s := &Server{o: Options{Metrics: metrics, Renderer: NewRenderer("")}}
	w := httptest.NewRecorder()
	c, _ := gin.CreateTestContext(w)
	x := &exchange{s: s, w: c.Writer, r: httptest.NewRequestWithContext(ctx, http.MethodPost, "/api/orders", http.NoBody)}
	require.True(t, x.placed())
	return x, w
}

func TestRefusalForWantOfRoomIsHeldBackWithoutAPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x, w := aboutToFail(t.Context(), t)
		started := time.Now()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			x.fail(order.Undecided(order.OutcomeNotCommitted, order.ErrOverloaded))
		}()
		synctest.Wait()
		require.Zero(t, x.s.inFlight.Load(), "it does nothing, so it keeps nobody out")
		select {
		case <-ended:
			require.Fail(t, "it was refused at once")
		default:
		}
		<-ended
		require.Equal(t, heldBack, time.Since(started))
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.NotEmpty(t, w.Header().Get("Retry-After"))
		x.leave()
		require.Zero(t, x.s.inFlight.Load(), "a place is given back once")
	})
}

func TestWhoLeavesIsNotHeldBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		leave()
		x, _ := aboutToFail(ctx, t)
		started := time.Now()
		x.fail(order.ErrOverloaded)
		require.Zero(t, time.Since(started))
	})
}

func TestOtherRefusalsAreNotHeldBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		for _, err := range []error{order.ErrUnavailable, order.ErrShuttingDown, order.ErrNotFound} {
			x, _ := aboutToFail(t.Context(), t)
			x.fail(err)
		}
		x, _ := aboutToFail(t.Context(), t)
		x.problem(newProblem(CodeOverloaded), nil) // of the bound on requests in flight, which is of the machine
		require.Zero(t, time.Since(started))
	})
}
