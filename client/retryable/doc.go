// Package retryable fits hashicorp/go-retryablehttp to the gateway, for programs
// that use it already. Left to itself it takes 409 for final, which is wrong for
// a request whose first attempt is still running, and its pauses have no jitter.
//
//	c := retryablehttp.NewClient()
//	c.CheckRetry, c.Backoff = retryable.CheckRetry, retryable.Backoff
//	c.ErrorHandler = retryablehttp.PassthroughErrorHandler
//	c.HTTPClient.CheckRedirect = retryable.CheckRedirect
//
// It promises the rules of package client for one request. The key of the intent
// is the caller's: made once, stored before the first attempt, in the request's
// Idempotency-Key. It must not be used for other POSTs, which it would repeat as
// well.
package retryable
