//go:build unix

package bench

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"time"

	"github.com/oncegate/oncegate/loadtest/drive"
	"github.com/oncegate/oncegate/loadtest/identity"
)

const (
	fewUsers  = 1024
	manyUsers = 200_000
	// recordsPerUser is how many orders a user has made in a full table.
	recordsPerUser = 50
	// wealth is never used up.
	wealth = "99999999999.99"
)

// userName names the i-th user.
func userName(i int) string { return fmt.Sprintf("bench-%06d", i) }

// signUsers makes users and the value of their Authorization header.
func signUsers(secret string, n int, now time.Time) ([]drive.Identity, error) {
	issuer := identity.Issuer{Audience: "oncegate", Issuer: "oncegate", Lifetime: 48 * time.Hour}
	if err := issuer.UseSecret([]byte(secret)); err != nil {
		return nil, err
	}
	users := make([]drive.Identity, n)
	for i := range users {
		token, err := issuer.Token(userName(i), "orders", now)
		if err != nil {
			return nil, err
		}
		users[i] = drive.Identity{User: userName(i), Token: "Bearer " + token}
	}
	return users, nil
}

// insertUsers gives users their accounts.
func insertUsers(ctx context.Context, db *sql.DB, users []drive.Identity) error {
	const many = 1000
	for len(users) > 0 {
		n := min(len(users), many)
		var text strings.Builder
		text.WriteString("INSERT INTO users (user_id, balance, credited, created_at) VALUES ")
		for i, u := range users[:n] {
			if i > 0 {
				text.WriteByte(',')
			}
			fmt.Fprintf(&text, "('%s', %s, %s, UTC_TIMESTAMP(3))", u.User, wealth, wealth)
		}
		if _, err := db.ExecContext(ctx, text.String()); err != nil {
			return fmt.Errorf("give the users accounts: %w", err)
		}
		users = users[n:]
	}
	return nil
}

// fresh returns who orders next, with a key that nobody used: what a storefront
// sends, in no order that an index could profit from.
func fresh(users []drive.Identity) func() (drive.Identity, string) {
	var seed [32]byte
	_, _ = rand.Read(seed[:]) // never fails
	source := mathrand.NewChaCha8(seed)
	random := mathrand.New(source)
	var raw [16]byte
	return func() (drive.Identity, string) {
		_, _ = source.Read(raw[:]) // never fails
		return users[random.IntN(len(users))], uuidText(raw)
	}
}

// known returns one of the users with the key that this user has used before.
func known(users []drive.Identity, i int) func() (drive.Identity, string) {
	random := mathrand.New(mathrand.NewPCG(uint64(i), 0)) //nolint:gosec // G404: who comes next need not be a secret
	return func() (drive.Identity, string) {
		u := users[random.IntN(len(users))]
		return u, knownKey(u)
	}
}

func knownKey(u drive.Identity) string { return "once-" + u.User }

// uuidText writes 16 bytes as a UUID is written.
func uuidText(raw [16]byte) string {
	const digits = "0123456789abcdef"
	b := make([]byte, 0, 36)
	for i, c := range raw {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			b = append(b, '-')
		}
		b = append(b, digits[c>>4], digits[c&15])
	}
	return string(b)
}
