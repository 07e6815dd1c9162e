package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/gateway"
)

// How an issuer's keys are followed.
const (
	keysRefresh = 15 * time.Minute // how long a withdrawn key is known; tokens that were verified are believed five minutes more
	keysTimeout = 3 * time.Second  // for one look
	keysPause   = 10 * time.Second // between looks, whatever tokens come
	keysMaxBody = 1 << 20          // of what an issuer publishes, in bytes
)

// issuerKeys are the published keys of an issuer. They are read again every
// [keysRefresh], after a failed look and for a token of an unknown key, but
// never more often than every pause: tokens with made-up key ids cost the issuer
// nothing, and are answered like those of a key too new to be known. Those known
// stay in force while it is away. Safe for concurrent use.
type issuerKeys struct {
	address string
	pause   time.Duration
	timeout time.Duration // for one look
	client  *http.Client
	log     *slog.Logger

	known   atomic.Pointer[keyfunc.Keyfunc] // nil before the first success
	failing atomic.Bool                     // the last look failed

	looking sync.Mutex // held by the one who looks
	looked  time.Time  // when the last look ended
	useless int        // keys that were published then and cannot be used
}

// errOthersKey does not name the key: what it is called is a part of a token, which
// is for no log.
var errOthersKey = errors.New("it names a key that the issuer does not publish")

// followKeys reads the issuer's keys until the App closes. An issuer that is
// away at the start is asked again until it answers.
func (a *App) followKeys(ctx context.Context, address string, pause, timeout time.Duration) (*issuerKeys, error) {
	k := &issuerKeys{
		address: address,
		pause:   pause,
		timeout: timeout,
		client: &http.Client{
			// Only the address that was configured, and checked to be encrypted.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		log: a.log,
	}
	if _, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody); err != nil {
		return nil, err
	}
	k.look(ctx)
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	var follower sync.WaitGroup
	follower.Go(func() { k.follow(following) })
	a.keep("issuer's keys", func(context.Context) error {
		stop()
		follower.Wait()
		return nil
	})
	return k, nil
}

func (k *issuerKeys) follow(ctx context.Context) {
	for looked := true; ; {
		next := keysRefresh
		if !looked || k.failing.Load() {
			next = k.pause
		}
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
			looked = k.look(ctx) // if not, somebody else does or just has, and may yet fail
		}
	}
}

// find is the [jwt.Keyfunc]. Its error wraps [gateway.ErrKeysUnavailable] when
// the key may exist and cannot be read now.
func (k *issuerKeys) find(token *jwt.Token) (any, error) {
	key, err := k.ofKnown(token)
	if !errors.Is(err, jwkset.ErrKeyNotFound) {
		return key, err
	}
	if !k.look(context.Background()) {
		// Somebody else is looking, or has just looked, and the key may have been
		// published since. Whoever waited here would hold a place that an honest
		// client needs.
		return nil, fmt.Errorf("%w: they are read at most every %s", gateway.ErrKeysUnavailable, configs.FormatDuration(k.pause))
	}
	key, err = k.ofKnown(token)
	switch {
	case !errors.Is(err, jwkset.ErrKeyNotFound):
		return key, err
	case k.failing.Load():
		return nil, fmt.Errorf("%w: the last look failed", gateway.ErrKeysUnavailable)
	default:
		return nil, errOthersKey
	}
}

func (k *issuerKeys) ofKnown(token *jwt.Token) (any, error) {
	known := k.known.Load()
	if known == nil {
		return nil, jwkset.ErrKeyNotFound
	}
	return (*known).Keyfunc(token)
}

// look reads the keys if the pause is over and nobody else does. It reports
// whether it did: only then is a key that is not known nobody's.
func (k *issuerKeys) look(ctx context.Context) bool {
	if !k.looking.TryLock() {
		return false
	}
	defer k.looking.Unlock()
	if time.Since(k.looked) < k.pause {
		return false
	}
	k.read(ctx)
	return true
}

// read reads the keys. It needs the lock.
func (k *issuerKeys) read(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	known, useless, err := k.fetch(ctx)
	if err == nil {
		k.known.Store(&known)
		if len(useless) > 0 && len(useless) != k.useless {
			k.log.WarnContext(ctx, "keys of the issuer cannot be used", "count", len(useless), "error", errors.Join(useless...))
		}
		k.useless = len(useless)
	}
	k.looked = time.Now()
	k.failing.Store(err != nil)
	if err != nil && !errors.Is(err, context.Canceled) {
		k.log.WarnContext(ctx, "the issuer's keys cannot be read; those known stay in force", "error", err)
	}
}

func (k *issuerKeys) fetch(ctx context.Context) (known keyfunc.Keyfunc, useless []error, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, k.address, http.NoBody)
	if err != nil {
		return nil, nil, err
	}
	resp, err := k.client.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("%s answered %d", k.address, resp.StatusCode)
	}
	document, err := io.ReadAll(io.LimitReader(resp.Body, keysMaxBody+1))
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("read the answer of %s: %w", k.address, err)
	case len(document) > keysMaxBody:
		return nil, nil, fmt.Errorf("%s answered more than %s", k.address, configs.Size(keysMaxBody))
	}
	known, useless, err = parseKeys(document)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", k.address, err)
	}
	return known, useless, nil
}
