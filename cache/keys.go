package cache

import (
	"crypto/sha256"
	"encoding/base64"

	"github.com/oncegate/oncegate/order"
)

// keyVersion changes with the form of a key or of a record, so that two
// versions of the gateway never read each other's entries.
const keyVersion = "1"

// redisKey names the entry of a user's key. The user is the hash tag, so that
// one user's entries share a slot; user and key are hashed, so that no client
// steers a slot with braces or stores bytes of its choice, and no key can be
// read in Redis.
func redisKey(prefix, user string, key order.Key) string {
	tag := sha256.Sum256([]byte(user))
	b := make([]byte, 0, len(user)+1+len(key))
	b = append(b, user...)
	b = append(b, 0) // neither may contain it
	b = append(b, key...)
	name := sha256.Sum256(b)

	out := make([]byte, 0, len(prefix)+64)
	out = append(out, prefix...)
	out = append(out, ":"+keyVersion+":{"...)
	out = base64.RawURLEncoding.AppendEncode(out, tag[:12])
	out = append(out, "}:"...)
	out = base64.RawURLEncoding.AppendEncode(out, name[:18])
	return string(out)
}
