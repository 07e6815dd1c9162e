package crashpoint

// Point is one place. Between two messages to Redis or the database lies exactly
// one point, after the one and before the other; it is named for the one that
// follows.
type Point string

// Each variable names a point: there a process built with the tag dies, or
// stops until it is told to go on.
const (
	Variable       = "ONCEGATE_TEST_CRASH_AT"
	FreezeVariable = "ONCEGATE_TEST_FREEZE_AT"
)

// The points, in the order in which an order meets them.
const (
	BeforeMark           Point = "before-mark"            // nothing was sent anywhere
	AfterMark            Point = "after-mark"             // Redis says that the key is being decided
	BeforeLock           Point = "before-lock"            // the ledger has begun a transaction
	BeforeRecords        Point = "before-records"         // the user's row is locked
	BeforeNumbers        Point = "before-numbers"         // the key is known to be new
	BeforeStock          Point = "before-stock"           // the business number is known to be free
	BeforeInsertOrders   Point = "before-insert-orders"   // the order is decided, and nothing is written
	BeforeInsertRecords  Point = "before-insert-records"  // the order is written
	BeforeUpdateBalances Point = "before-update-balances" // its record is written
	BeforeUpdateStock    Point = "before-update-stock"    // it is paid for
	BeforeCommit         Point = "before-commit"          // all is written, and nothing is committed
	AfterCommit          Point = "after-commit"           // the server has answered the COMMIT
	BeforeReceipt        Point = "before-receipt"         // the order is committed, and Redis does not know
	AfterReceipt         Point = "after-receipt"          // Redis has the answer
	BeforeRelease        Point = "before-release"         // nothing was committed, and the mark is there
	AfterRelease         Point = "after-release"          // the mark is gone
	BeforeAnswer         Point = "before-answer"          // the answer is known, and the client has not heard
	AfterAnswer          Point = "after-answer"           // the answer is on its way
)

// OfACreatedOrder lists the points that an order meets which is made: one with a
// business number and a limited SKU meets all of them.
func OfACreatedOrder() []Point {
	return []Point{
		BeforeMark, AfterMark, BeforeLock, BeforeRecords, BeforeNumbers, BeforeStock,
		BeforeInsertOrders, BeforeInsertRecords, BeforeUpdateBalances, BeforeUpdateStock,
		BeforeCommit, AfterCommit, BeforeReceipt, AfterReceipt, BeforeAnswer, AfterAnswer,
	}
}

// OfARefusedOrder lists the points that an order meets which is refused under
// the user's lock, and whose refusal is remembered.
func OfARefusedOrder() []Point {
	return []Point{
		BeforeMark, AfterMark, BeforeLock, BeforeRecords, BeforeNumbers, BeforeStock,
		BeforeInsertRecords, BeforeUpdateBalances, BeforeUpdateStock,
		BeforeCommit, AfterCommit, BeforeReceipt, AfterReceipt, BeforeAnswer, AfterAnswer,
	}
}

// OfAnOrderWithoutAnAccount lists the points that an order meets which leaves no
// trace: its user has no account.
func OfAnOrderWithoutAnAccount() []Point {
	return []Point{
		BeforeMark, AfterMark, BeforeLock, BeforeRecords, BeforeNumbers, BeforeStock,
		BeforeRelease, AfterRelease, BeforeAnswer, AfterAnswer,
	}
}
