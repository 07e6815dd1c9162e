package store

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
	"github.com/oncegate/oncegate/order/ordertest"
)

// harness is a store as the contract suite drives it.
type harness struct {
	*Store
	o Options
}

// openHarness opens a store that is closed with the test.
func openHarness(tb testing.TB, o Options) *harness {
	tb.Helper()
	h := openAlone(tb, o)
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), ample)
		defer cancel()
		require.NoError(tb, h.Close(ctx))
	})
	return h
}

// openAlone opens a store that the test closes itself. A test that says nothing of
// the limits does not hang on how fast a disk is.
func openAlone(tb testing.TB, o Options) *harness {
	tb.Helper()
	if o.ReadTimeout == 0 && o.WaitTimeout == 0 {
		patient(&o)
	}
	if o.Renderer == nil {
		o.Renderer = ordertest.PlainRenderer{}
	}
	s, err := Open(tb.Context(), o)
	require.NoError(tb, err)
	return &harness{Store: s, o: o}
}

// patient has every reply waited for: of tests in which nobody is silent.
func patient(o *Options) { o.ReadTimeout, o.WaitTimeout = ample, 2*ample }

// openSuite adapts the suite's options.
func openSuite(t *testing.T, dsn string, lo ordertest.LedgerOptions) ordertest.Harness {
	t.Helper()
	o := Options{DSN: dsn, Workers: lo.Workers, MaxBatch: lo.MaxBatch, ProvisionBalance: lo.ProvisionBalance}
	if lo.RememberRejections != nil {
		o.ForgetRejections = !*lo.RememberRejections
	}
	return openHarness(t, o)
}

func (h *harness) Sibling(t *testing.T) ordertest.Harness {
	t.Helper()
	o := h.o
	o.Registerer = nil
	return openHarness(t, o)
}

func (h *harness) Balance(ctx context.Context, user string) (order.Amount, error) {
	var balance money
	err := h.ask(ctx, "SELECT balance FROM users WHERE user_id = ?", &balance, user)
	return balance.Amount, h.translate("read a balance", err)
}

func (h *harness) Stock(ctx context.Context, sku string) (available int64, limited bool, err error) {
	err = h.ask(ctx, "SELECT available FROM stock WHERE sku = ?", &available, sku)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return available, err == nil, err
}

func (h *harness) CountOrders(ctx context.Context, user string) (int, error) {
	return h.count(ctx, "SELECT COUNT(*) FROM orders WHERE user_id = ?", user)
}

func (h *harness) CountRecords(ctx context.Context, user string) (int, error) {
	return h.count(ctx, "SELECT COUNT(*) FROM idempotency_records WHERE user_id = ?", user)
}

func (h *harness) count(ctx context.Context, text string, args ...any) (n int, err error) {
	err = h.ask(ctx, text, &n, args...)
	return n, err
}

// ask reads a value. A server may be slower than the limits with which a test has
// silence noticed: it is asked again then.
func (h *harness) ask(ctx context.Context, text string, value any, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, ample)
	defer cancel()
	err := h.reads.QueryRowContext(ctx, text, args...).Scan(value)
	for err != nil && h.faultOf(err) == faultUnavailable && pause(ctx, firstDelay) {
		err = h.reads.QueryRowContext(ctx, text, args...).Scan(value)
	}
	return err
}

func sqliteDatabase(tb testing.TB) string {
	tb.Helper()
	dsn := sqliteScheme + filepath.Join(tb.TempDir(), "orders.db")
	require.NoError(tb, Migrate(tb.Context(), Options{DSN: dsn}))
	return dsn
}
