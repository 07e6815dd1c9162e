package identity

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/oncegate/oncegate/loadtest/drive"
)

// Read reads users, one on a line: the name, then a blank and a token, which may
// be absent when the issuer can sign one. Empty lines and lines that begin with #
// are passed over. The issuer may be nil.
func Read(r io.Reader, issuer *Issuer, now time.Time) ([]drive.Identity, error) {
	var users []drive.Identity
	seen := map[string]bool{}
	s := bufio.NewScanner(r)
	for n := 1; s.Scan(); n++ {
		fields := strings.Fields(s.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		u := drive.Identity{User: fields[0]}
		switch {
		case len(fields) > 2:
			return nil, fmt.Errorf("users, line %d: want a name and a token", n)
		case seen[u.User]:
			return nil, fmt.Errorf("users, line %d: this user is there twice", n)
		case len(fields) == 2:
			u.Token = fields[1]
		case issuer == nil:
			return nil, fmt.Errorf("users, line %d: no token, and no secret or key to sign one", n)
		default:
			token, err := issuer.Token(u.User, issuer.Scope, now)
			if err != nil {
				return nil, err
			}
			u.Token = token
		}
		seen[u.User] = true
		users = append(users, u)
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("users: %w", err)
	}
	if len(users) == 0 {
		return nil, errors.New("users: the file has none")
	}
	return users, nil
}
