package cache

import (
	"crypto/sha256"
	"encoding/base64"

	"github.com/oncegate/oncegate/order"
)

// keyVersion changes with the form of a key or of a record, so that two
// versions of the gateway never read each other's entries.
const keyVersion = "1"

// Lengths of the hashes in a name, in bytes; whole groups of base64.
const (
	tagLen  = 12
	nameLen = 18
)

// namer makes the names of Redis entries; nothing else does. A name is
//
//	prefix ":" version ":{" hash of the user "}:" hash of user and key
//
// The braces make the user the hash tag, so that one user's entries share a
// slot of a Cluster. No byte of a client is in a name: nobody steers a slot
// with braces of his own or stores bytes of his choice. The hashes are keyed,
// so that who can read Redis cannot try out users and keys.
type namer struct {
	prefix string
	secret [sha256.Size]byte
}

func newNamer(prefix string, macKey []byte) *namer {
	return &namer{prefix: prefix + ":" + keyVersion + ":{", secret: sha256.Sum256(append([]byte("oncegate names\x00"), macKey...))}
}

// name returns the name of the entry of a user's key. User and key have no
// zero byte, so that no two pairs hash the same text.
func (n *namer) name(user string, key order.Key) string {
	var text [sha256.Size + 1 + order.MaxUserIDLen + 1 + order.MaxKeyLen]byte
	b := append(text[:0], n.secret[:]...)
	b = append(b, user...)
	tag := sha256.Sum256(b)
	b = append(b, 0)
	b = append(b, key...)
	name := sha256.Sum256(b)

	out := make([]byte, 0, len(n.prefix)+(tagLen+nameLen)*4/3+2)
	out = append(out, n.prefix...)
	out = base64.RawURLEncoding.AppendEncode(out, tag[:tagLen])
	out = append(out, "}:"...)
	out = base64.RawURLEncoding.AppendEncode(out, name[:nameLen])
	return string(out)
}
