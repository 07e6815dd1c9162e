package ordertest

import (
	"context"
	"testing"

	"github.com/oncegate/oncegate/order"
)

// LedgerOptions are what the contract varies. Zero means the default of the engine.
type LedgerOptions struct {
	RememberRejections *bool         // nil: true
	ProvisionBalance   *order.Amount // nil: unknown users are refused
	MaxBatch           int           // commands in one transaction
	Workers            int           // transactions at one time
}

// Harness is a ledger under test together with eyes on its database. It renders
// with [PlainRenderer] and is closed by the test's clean-up.
type Harness interface {
	order.Ledger
	order.Book
	order.Accounts
	// Balance is order.ErrNotFound for an unknown user.
	Balance(ctx context.Context, userID string) (order.Amount, error)
	// Stock tells what is available, and whether the SKU is limited at all.
	Stock(ctx context.Context, sku string) (available int64, limited bool, err error)
	CountOrders(ctx context.Context, userID string) (int, error)
	CountRecords(ctx context.Context, userID string) (int, error)
	// Sibling opens a second, independent ledger with the same options on the
	// same database, as a second gateway has it.
	Sibling(t *testing.T) Harness
}

// RunLedger checks the promises of [order.Ledger], [order.Book] and
// [order.Accounts]. Every test has users, SKUs and numbers of its own, so that
// all of them run in parallel on one database, and again on the next day.
func RunLedger(t *testing.T, open func(t *testing.T, o LedgerOptions) Harness) {
	h := open(t, LedgerOptions{})
	suite := []struct {
		name string
		run  func(t *testing.T, h Harness)
	}{
		{"SameKeySameBodyReplaysTheFirstAnswer", sameKeySameBody},
		{"SameKeyOtherBodyIsReused", sameKeyOtherBody},
		{"KeysAreComparedByteForByte", keysByteForByte},
		{"LongKeysAreWhole", longKeys},
		{"TwoUsersWithOneKeyAreStrangers", usersAreStrangers},
		{"TextsOfAnyScriptComeBackAsTheyWere", anyScript},
		{"IdenticalOrdersWithTwoKeysAreTwoOrders", identicalOrders},
		{"UnprotectedOrdersNeverDedupe", unprotected},
		{"RefusalOfOneUserDoesNotTouchAnother", neighbours},

		{"TakenNumberIsToldApart", takenNumber},
		{"NumbersAreComparedByteForByte", numbersByteForByte},
		{"BalanceRefusalIsRemembered", balanceRefused},
		{"StockRefusalIsRemembered", stockRefused},
		{"StockIsPerSKUByteForByte", stockByteForByte},
		{"LastCentAndLastPieceCanBeSpent", lastCent},
		{"UnknownUserLeavesNothing", unknownUser},

		{"BatchIsOneReceipt", batchCreated},
		{"BatchIsAllOrNothing", batchAllOrNothing},
		{"BatchListsEveryConflict", batchConflicts},
		{"BatchOf500ReplaysInFull", batchLarge},
		{"OneKeyForOrderAndBatchIsReused", batchAgainstOrder},

		{"OneKeyRacedOverThreeLedgersIsOneOrder", raceOneKey},
		{"OneKeyRacedWithTwoBodiesIsOneOrder", raceTwoBodies},
		{"OneNumberRacedIsOneOrder", raceOneNumber},
		{"BalanceForTenMakesTenOrders", raceBalance},
		{"StockForTenMakesTenOrders", raceStock},
		{"UnequalOrdersRacedSpendWhatIsThere", raceUnequal},
		{"CrossedStockRowsDoNotDeadlock", raceCrossedStock},
		{"MixedGroupGetsItsOwnOutcomes", mixedGroup},
		{"CancelledCommandsTellTheTruth", cancelled},
		{"EndedContextIsNotStarted", endedContext},

		{"FindAndConfirmReadTheRecord", findAndConfirm},
		{"OrdersAreTheirOwnersOnly", ordersPrivate},
		{"PagesAreCompleteAndDisjoint", paging},
		{"TimesAgreeInAnswerAndRead", timesAgree},
		{"AmountsAtTheLimitsAreExact", amountLimits},
		{"BalanceAndStockCanBeSetAgain", accountsSetAgain},

		{"RandomSequencesFollowTheModel", followsModel},
	}
	for _, s := range suite {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.run(t, h)
		})
	}
	t.Run("ForgottenRefusalsMayBeTriedAgain", func(t *testing.T) {
		t.Parallel()
		no := false
		refusalsForgotten(t, open(t, LedgerOptions{RememberRejections: &no}))
	})
	t.Run("UsersAreProvisionedOnFirstSight", func(t *testing.T) {
		t.Parallel()
		balance := order.Amount(100_00)
		provisioned(t, open(t, LedgerOptions{ProvisionBalance: &balance}))
	})
	t.Run("OneTransactionPerOrder", func(t *testing.T) {
		t.Parallel()
		one := open(t, LedgerOptions{MaxBatch: 1, Workers: 2})
		for _, s := range suite {
			switch s.name {
			case "OneKeyRacedOverThreeLedgersIsOneOrder", "BalanceForTenMakesTenOrders",
				"StockForTenMakesTenOrders", "CrossedStockRowsDoNotDeadlock", "MixedGroupGetsItsOwnOutcomes":
				t.Run(s.name, func(t *testing.T) {
					t.Parallel()
					s.run(t, one)
				})
			}
		}
	})
}
