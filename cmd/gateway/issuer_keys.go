package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/MicahParks/jwkset"
	"github.com/MicahParks/keyfunc/v3"
)

var errNoKeySet = errors.New("what is published is no JWK Set")

// parseKeys reads a JWK Set (RFC 7517, section 5). A key that cannot be used is
// passed over, and named by its place, so that it does not take the others along;
// one that is not for signatures is passed over silently. What is no set at all,
// such as the JSON of an error, is an error: it withdraws nothing.
func parseKeys(document []byte) (known keyfunc.Keyfunc, useless []error, err error) {
	var set struct {
		Keys *[]json.RawMessage `json:"keys"`
	}
	if json.Unmarshal(document, &set) != nil || set.Keys == nil {
		return nil, nil, errNoKeySet // the cause would quote it
	}
	storage := jwkset.NewMemoryStorage()
	for i, text := range *set.Keys {
		key, err := jwkset.NewJWKFromRawJSON(text, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
		switch {
		case err != nil:
			useless = append(useless, fmt.Errorf("keys[%d]: %w", i, err))
		case verifies(key.Marshal()):
			_ = storage.KeyWrite(context.Background(), key) // memory never fails
		}
	}
	known, err = keyfunc.New(keyfunc.Options{Storage: storage})
	return known, useless, err
}

// verifies reports whether a key is for verifying signatures (RFC 7517, sections 4.2
// and 4.3). One for encryption is published beside the others, and whoever has its
// other half need not be who signs tokens.
func verifies(key jwkset.JWKMarshal) bool {
	return (key.USE == "" || key.USE == jwkset.UseSig) && (len(key.KEYOPS) == 0 || slices.Contains(key.KEYOPS, jwkset.KeyOpsVerify))
}
