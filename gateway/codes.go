package gateway

import (
	"net/http"
	"strings"

	"github.com/oncegate/oncegate/order"
)

// Code names a problem for programs. Codes are part of the contract.
type Code string

// The codes.
const (
	CodeInvalidRequest       Code = "INVALID_REQUEST"
	CodeKeyRequired          Code = "IDEMPOTENCY_KEY_REQUIRED"
	CodeKeyInvalid           Code = "IDEMPOTENCY_KEY_INVALID"
	CodeUnauthenticated      Code = "UNAUTHENTICATED"
	CodeForbidden            Code = "FORBIDDEN"
	CodeUserUnknown          Code = "USER_UNKNOWN"
	CodeNotFound             Code = "NOT_FOUND"
	CodeMethodNotAllowed     Code = "METHOD_NOT_ALLOWED"
	CodeInProgress           Code = "REQUEST_IN_PROGRESS"
	CodeKeyReused            Code = "IDEMPOTENCY_KEY_REUSED"
	CodeOrderExists          Code = Code(order.OrderAlreadyExists)
	CodeStateConflict        Code = "ORDER_STATE_CONFLICT"
	CodeOrderNotThere        Code = "ORDER_NOT_THERE_YET"
	CodeSignatureInvalid     Code = "SIGNATURE_INVALID"
	CodeExecutionFailed      Code = Code(order.ExecutionFailed)
	CodeBodyTooLarge         Code = "BODY_TOO_LARGE"
	CodeUnsupportedMediaType Code = "UNSUPPORTED_MEDIA_TYPE"
	CodeInsufficientBalance  Code = Code(order.InsufficientBalance)
	CodeOutOfStock           Code = Code(order.OutOfStock)
	CodeRateLimited          Code = "RATE_LIMITED"
	CodeInternal             Code = "INTERNAL"
	CodeOverloaded           Code = "OVERLOADED"
	CodeUnavailable          Code = "UNAVAILABLE"
	CodePreconditionRequired Code = "PRECONDITION_REQUIRED"
	CodeVersionMismatch      Code = "VERSION_MISMATCH"
	CodeSettingFixed         Code = "SETTING_FIXED"
	CodeSettingPinned        Code = "SETTING_PINNED"
)

// Codes returns every code, for metrics and documents.
func Codes() []Code {
	return []Code{
		CodeInvalidRequest, CodeKeyRequired, CodeKeyInvalid, CodeUnauthenticated, CodeForbidden,
		CodeUserUnknown, CodeNotFound, CodeMethodNotAllowed, CodeInProgress, CodeKeyReused,
		CodeOrderExists, CodeBodyTooLarge, CodeUnsupportedMediaType, CodeInsufficientBalance,
		CodeOutOfStock, CodeRateLimited, CodeInternal,
		CodeStateConflict, CodeOrderNotThere, CodeSignatureInvalid, CodeExecutionFailed, CodeOverloaded, CodeUnavailable,
		CodePreconditionRequired, CodeVersionMismatch, CodeSettingFixed, CodeSettingPinned,
	}
}

// problemKind is what all problems of one code have in common.
type problemKind struct {
	status  int
	title   string
	detail  string
	outcome order.Outcome
	// retryable: the same request with the same key may be answered otherwise.
	retryable bool
	// safeNewKey: a new key cannot make a second order for the same intent. It is
	// false wherever an earlier attempt with this key may have succeeded, even
	// if this one made nothing.
	safeNewKey bool
}

// kind returns what a code stands for. An unknown code is INTERNAL.
func (c Code) kind() problemKind {
	const rejected, undone, unknown = order.OutcomeRejected, order.OutcomeNotCommitted, order.OutcomeUnknown
	switch c {
	case CodeInvalidRequest:
		return problemKind{http.StatusBadRequest, "The request is invalid", "Correct what errors lists and send the request again; nothing was claimed.", rejected, false, false}
	case CodeKeyRequired:
		return problemKind{http.StatusBadRequest, "An idempotency key is required", "Send one Idempotency-Key header, made once per intent.", rejected, false, true}
	case CodeKeyInvalid:
		return problemKind{http.StatusBadRequest, "The idempotency key is invalid", "Send exactly one Idempotency-Key of 1 to 255 visible ASCII characters without quote, comma and backslash.", rejected, false, true}
	case CodeUnauthenticated:
		return problemKind{http.StatusUnauthorized, "Authentication is required", "Send a valid bearer token.", rejected, false, false}
	case CodeForbidden:
		return problemKind{http.StatusForbidden, "Not allowed", "The token does not allow this.", rejected, false, false}
	case CodeUserUnknown:
		return problemKind{http.StatusForbidden, "The user has no account", "The subject of the token has no account here.", undone, false, false}
	case CodeNotFound:
		return problemKind{http.StatusNotFound, "Not found", "There is nothing at this address for this caller.", rejected, false, false}
	case CodeMethodNotAllowed:
		return problemKind{http.StatusMethodNotAllowed, "The method is not allowed", "Use one of the methods in Allow.", rejected, false, false}
	case CodeInProgress:
		return problemKind{http.StatusConflict, "The first attempt is still running", "Wait, then send the same request with the same key, or ask status_url.", unknown, true, false}
	case CodeKeyReused:
		return problemKind{http.StatusConflict, "The idempotency key belongs to another request", "This key was sent before with another content. A new intent needs a new key.", rejected, false, true}
	case CodeOrderExists:
		return problemKind{http.StatusConflict, "The business number is taken", "Read the orders named in conflicts; another order needs another number and a new key.", rejected, false, true}
	case CodeStateConflict:
		return problemKind{http.StatusConflict, "The order's state does not allow it", "Read the order; its state only moves forward.", rejected, false, false}
	case CodeOrderNotThere:
		return problemKind{http.StatusConflict, "There is no such order yet", "Wait, then send the same event again; nothing was stored.", undone, true, false}
	case CodeSignatureInvalid:
		return problemKind{http.StatusUnauthorized, "The signature is invalid", "Sign id, timestamp and raw body as Standard Webhooks has it, with a current timestamp.", rejected, false, false}
	case CodeExecutionFailed:
		return problemKind{http.StatusInternalServerError, "The request could not be carried out", "This is a fault of the service; nothing was ordered. Another try is a new intent and needs a new key.", rejected, false, true}
	case CodeBodyTooLarge:
		return problemKind{http.StatusRequestEntityTooLarge, "The body is too large", "Send a smaller body; the policy has the limit.", rejected, false, false}
	case CodeUnsupportedMediaType:
		return problemKind{http.StatusUnsupportedMediaType, "The media type is not supported", "Send application/json in UTF-8, uncompressed.", rejected, false, false}
	case CodeInsufficientBalance:
		return problemKind{http.StatusUnprocessableEntity, "The balance is not sufficient", "Nothing was ordered. Another try is a new intent and needs a new key.", rejected, false, true}
	case CodeOutOfStock:
		return problemKind{http.StatusUnprocessableEntity, "Not enough is in stock", "Nothing was ordered. Another try is a new intent and needs a new key.", rejected, false, true}
	case CodeRateLimited:
		return problemKind{http.StatusTooManyRequests, "Too many requests", "Wait, then send the same request with the same key.", undone, true, false}
	case CodeOverloaded:
		return problemKind{http.StatusServiceUnavailable, "The service is overloaded", "Wait, then send the same request with the same key.", undone, true, false}
	case CodeUnavailable:
		return problemKind{http.StatusServiceUnavailable, "The service is unavailable", "Wait, then send the same request with the same key.", unknown, true, false}
	case CodePreconditionRequired:
		return problemKind{http.StatusPreconditionRequired, "A version is required", "Send If-Match with the ETag of what you read, so that nobody else's change is undone.", rejected, false, false}
	case CodeVersionMismatch:
		return problemKind{http.StatusPreconditionFailed, "Somebody was faster", "It was changed since you read it. Read it again, and decide anew.", rejected, false, false}
	case CodeSettingFixed:
		return problemKind{http.StatusConflict, "The setting needs a restart", "This setting cannot be changed while the gateway runs.", rejected, false, false}
	case CodeSettingPinned:
		return problemKind{http.StatusConflict, "The setting is given elsewhere", "A file, the environment or a flag gives this setting: its origin says which. Change it there.", rejected, false, false}
	default:
		return problemKind{http.StatusInternalServerError, "An internal error", "This is a fault of the service. Tell its operator the request_id.", unknown, false, false}
	}
}

// slug is the code as the last part of a problem's type.
func (c Code) slug() string {
	return strings.ReplaceAll(strings.ToLower(string(c)), "_", "-")
}
