package retryable

import (
	"context"
	"net/http"
	"time"

	"github.com/oncegate/oncegate/client"
)

// CheckRetry is a [retryablehttp.CheckRetry]: whether the same request with the
// same key may be answered otherwise. The gateway's own word decides; without
// it, lost connections and what proxies say of an upstream that is away.
//
// [retryablehttp.CheckRetry]: https://pkg.go.dev/github.com/hashicorp/go-retryablehttp#CheckRetry
func CheckRetry(ctx context.Context, resp *http.Response, err error) (bool, error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	return client.Advise(resp, err).Again, nil
}

// CheckRedirect is for [http.Client.CheckRedirect]: no redirect is followed. A
// redirected POST becomes a GET, or goes with its order and its key to wherever
// the answer points, and what comes back is no receipt.
func CheckRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Backoff is a [retryablehttp.Backoff] with full jitter: between nothing and an
// exponentially growing limit, from shortest to longest, and never before the
// gateway's Retry-After. Attempts count from 0.
//
// [retryablehttp.Backoff]: https://pkg.go.dev/github.com/hashicorp/go-retryablehttp#Backoff
func Backoff(shortest, longest time.Duration, attempt int, resp *http.Response) time.Duration {
	var after time.Duration
	if resp != nil {
		after = client.Advise(resp, nil).After
	}
	return client.Backoff{Base: shortest, Cap: longest}.Pause(attempt+1, after)
}
