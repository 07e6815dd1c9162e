package consumer

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/oncegate/oncegate/order"
)

// digest hashes what a message means, as length-prefixed fields. Spelling does
// not reach it: a sender may write the same event differently the next time.
// The leading version must change whenever the form does; a golden test pins it.
func digest(m *order.PaymentMessage) order.Digest {
	var form []byte
	for _, field := range []string{
		"oncegate.payment/1", string(m.Type), m.OrderID.String(), m.Amount.String(), m.ProviderReference,
	} {
		form = binary.BigEndian.AppendUint64(form, uint64(len(field)))
		form = append(form, field...)
	}
	return sha256.Sum256(form)
}
