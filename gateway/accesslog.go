package gateway

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/http"
	"time"

	"github.com/oncegate/oncegate/order"
)

// log writes the one line of a request. Replays and probes are for debugging
// only: there can be many. It never holds a key, a body or a token.
func (x *exchange) log(ep *endpoint, status int, took time.Duration) {
	level := slog.LevelInfo
	switch {
	case status == http.StatusInternalServerError:
		level = slog.LevelError
	case status >= http.StatusInternalServerError && !ep.quiet:
		level = slog.LevelWarn
	case x.change.Effect == order.Parked, x.change.RefundOwed && !x.change.Duplicate:
		level = slog.LevelWarn // somebody has to look at it
	case ep.quiet, x.answer.Kind == order.Replayed:
		level = slog.LevelDebug
	}
	ctx := x.r.Context()
	if !x.s.o.Logger.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 12)
	attrs = append(attrs,
		slog.String("request_id", x.id),
		slog.String("method", x.r.Method),
		slog.String("route", ep.name),
		slog.Int("status", status),
		slog.Duration("took", took),
	)
	if x.who.UserID != "" {
		attrs = append(attrs, slog.String("user", x.who.UserID))
	}
	if x.key != "" {
		attrs = append(attrs, slog.String("key_hash", keyHash(x.s.logKey, x.who.UserID, x.key)))
	}
	if x.digest != (order.Digest{}) {
		attrs = append(attrs, slog.String("digest", shortDigest(x.digest)))
	}
	if x.answer.Kind != 0 {
		attrs = append(attrs, slog.String("kind", x.answer.Kind.String()), slog.String("layer", x.answer.Layer.String()))
	}
	if x.change.Effect != "" {
		attrs = append(attrs, slog.String("effect", string(x.change.Effect)),
			slog.Bool("duplicate", x.change.Duplicate), slog.Bool("refund_owed", x.change.RefundOwed))
	}
	if id := x.change.Order.ID; !id.IsZero() {
		attrs = append(attrs, slog.String("order_id", id.String()))
	}
	if x.code != "" {
		attrs = append(attrs, slog.String("code", string(x.code)))
	}
	if x.cause != nil {
		attrs = append(attrs, slog.String("cause", x.cause.Error()))
	}
	x.s.o.Logger.LogAttrs(ctx, level, "request", attrs...)
}

// keyHash stands for a user's key in logs. It is keyed, for short keys could be
// guessed from a plain hash.
func keyHash(secret []byte, userID string, key order.Key) string {
	mac := hmac.New(sha256.New, secret)
	_, _ = mac.Write([]byte(userID + "\x00" + string(key)))
	return hex.EncodeToString(mac.Sum(nil)[:6])
}

func shortDigest(d order.Digest) string { return hex.EncodeToString(d[:8]) }
