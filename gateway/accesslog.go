package gateway

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/oncegate/oncegate/order"
)

// log writes the one line of a request. Replays and probes are for debugging
// only: there can be many. Of a key it holds the beginning and a hash; it never
// holds a body or a token.
func (x *exchange) log(ep *endpoint, status int, took time.Duration) {
	traceID := x.annotate(status)
	level := slog.LevelInfo
	switch {
	case status == http.StatusInternalServerError:
		level = slog.LevelError
	case status >= http.StatusInternalServerError && !ep.quiet:
		level = slog.LevelWarn
	case x.change.Effect == order.Parked, x.refund:
		level = slog.LevelWarn // somebody has to look at it
	case ep.quiet, x.answer.Kind == order.Replayed:
		level = slog.LevelDebug
	}
	ctx := x.r.Context()
	if !x.s.o.Logger.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 16)
	attrs = append(attrs,
		slog.String("request_id", x.id),
		slog.String("method", methodOf(x.r)),
		slog.String("route", ep.name),
		slog.Int("status", status),
		slog.Float64("took_ms", milliseconds(took)),
	)
	if traceID != "" {
		attrs = append(attrs, slog.String("trace_id", traceID))
	}
	if x.who.UserID != "" {
		attrs = append(attrs, slog.String("user", x.who.UserID))
	}
	if x.key != "" {
		attrs = append(attrs, slog.String("key_begins", keyBegins(x.key)), slog.String("key_hash", keyHash(x.s.logKey, x.who.UserID, x.key)))
	}
	if x.digest != (order.Digest{}) {
		attrs = append(attrs, slog.String("digest", shortDigest(x.digest)))
	}
	if x.answer.Kind != 0 {
		attrs = append(attrs, slog.String("kind", x.answer.Kind.String()), slog.String("layer", x.answer.Layer.String()))
	}
	if r := x.answer.Rejection; r != nil {
		attrs = append(attrs, slog.String("refusal", string(r.Code)))
		if len(r.Conflicts) > 0 {
			attrs = append(attrs, slog.String("conflict_rows", conflictRows(r.Conflicts)))
		}
	}
	if x.change.Effect != "" {
		attrs = append(attrs, slog.String("effect", string(x.change.Effect)),
			slog.Bool("duplicate", x.change.Duplicate), slog.Bool("refund_owed", x.change.RefundOwed))
	}
	if id := x.change.Order.ID; !id.IsZero() {
		attrs = append(attrs, slog.String("order_id", id.String()))
	}
	if x.code != "" {
		attrs = append(attrs, slog.String("code", string(x.code)), slog.String("outcome", string(x.known)))
	}
	if x.cause != nil {
		attrs = append(attrs, slog.String("cause", x.cause.Error()))
	}
	x.s.o.Logger.LogAttrs(ctx, level, "request", attrs...)
}

// methodOf is the method of a request for logs and traces. A client may make one
// up, as long as a header; those have one name (OpenTelemetry's).
func methodOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return r.Method
	default:
		return "_OTHER"
	}
}

// keyHash stands for a user's key in logs. It is keyed, for short keys could be
// guessed from a plain hash.
func keyHash(secret []byte, userID string, key order.Key) string {
	mac := hmac.New(sha256.New, secret)
	_, _ = mac.Write([]byte(userID + "\x00" + string(key)))
	return hex.EncodeToString(mac.Sum(nil)[:6])
}

// keyBegins is what is shown of a key: enough to tell a client's keys apart, and
// never more than a quarter, so that nobody can send it again.
func keyBegins(key order.Key) string { return string(key[:min(4, len(key)/4)]) }

// maxLoggedRows bounds the rows that a line names.
const maxLoggedRows = 20

// conflictRows lists the rows whose business number is taken, and how.
func conflictRows(conflicts []order.Conflict) string {
	var b strings.Builder
	for i := range conflicts {
		if i > 0 {
			b.WriteByte(' ')
		}
		if i == maxLoggedRows {
			b.WriteString("…" + strconv.Itoa(len(conflicts)))
			break
		}
		b.WriteString(strconv.Itoa(conflicts[i].Row) + ":" + string(conflicts[i].Reason))
	}
	return b.String()
}

// milliseconds is how times are logged, to the microsecond.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

func shortDigest(d order.Digest) string { return hex.EncodeToString(d[:8]) }
