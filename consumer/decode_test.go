package consumer

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/oncegate/oncegate/order"
)

const (
	orderID = "01890a5d-ac96-774b-bcce-b302099a8057"
	good    = `{"type":"payment.succeeded","data":{"order_id":"` + orderID + `","amount":"19.90","provider_reference":"ref-1"}}`
)

func TestSpellingDoesNotChangeTheEvent(t *testing.T) {
	t.Parallel()
	want, err := decode(message.NewMessage("m-1", []byte(good)), "c")
	require.NoError(t, err)
	require.Equal(t, order.EventPaymentSucceeded, want.Type)
	require.Equal(t, want.Amount, order.Amount(19_90))
	require.Equal(t, "ref-1", want.ProviderReference)
	require.Equal(t, orderID, want.OrderID.String())
	require.Equal(t, "m-1", want.MessageID)
	require.Equal(t, "c", want.Consumer)
	for _, body := range []string{
		strings.Replace(good, `"19.90"`, `19.9`, 1),
		strings.Replace(good, `"19.90"`, `"19.9"`, 1),
		strings.Replace(good, `ref-1`, `\u0072ef-1`, 1),
		` { "data" : {"provider_reference":"ref-1","amount":19.90,"order_id":"` + orderID + `"}, "type":"payment.succeeded"} `,
	} {
		m, err := decode(message.NewMessage("m-1", []byte(body)), "c")
		require.NoError(t, err, body)
		require.Equal(t, want.Digest, m.Digest, body)
	}
	for _, body := range []string{
		strings.Replace(good, "19.90", "19.91", 1),
		strings.Replace(good, "succeeded", "failed", 1),
		strings.Replace(good, "ref-1", "ref-2", 1),
		strings.Replace(good, "8057", "8058", 1),
	} {
		m, err := decode(message.NewMessage("m-1", []byte(body)), "c")
		require.NoError(t, err, body)
		require.NotEqual(t, want.Digest, m.Digest, body)
	}
}

func TestDigestKeepsItsForm(t *testing.T) {
	t.Parallel()
	m, err := decode(message.NewMessage("m-1", []byte(good)), "c")
	require.NoError(t, err)
	require.Equal(t, "81a31a14bd608f65563458430ae9868c39f15ca35c02cdf7f44f42fc7c712c8f", hex.EncodeToString(m.Digest[:]))
}

func TestMetadataNamesTheMessage(t *testing.T) {
	t.Parallel()
	m := message.NewMessage("uuid", []byte(good))
	m.Metadata.Set(MessageIDKey, "evt_1")
	p, err := decode(m, "c")
	require.NoError(t, err)
	require.Equal(t, "evt_1", p.MessageID)
}

func TestFaultsAreNamedAndNeverRepeatTheValue(t *testing.T) {
	t.Parallel()
	replace := func(old, by string) string { return strings.Replace(good, old, by, 1) }
	for body, fault := range map[string]string{
		"":                                       "is not valid JSON",
		"{":                                      "is not valid JSON",
		"null":                                   "must be a JSON object",
		"[]":                                     "must be a JSON object",
		good + "{}":                              "is not valid JSON",
		good[:len(good)-1] + ",}":                "is not valid JSON",
		"\xff" + good:                            "is not valid UTF-8",
		strings.Repeat(" ", maxBody) + good:      "is too large",
		replace(`"type"`, `"Type"`):              "has an unknown member",
		replace(`"type"`, `"secret"`):            "has an unknown member",
		replace(`{"type"`, `{"type":"x","type"`): "type is given more than once",
		replace(`"amount"`, `"amount":1,"amount"`):                     "data.amount is given more than once",
		replace(`"order_id"`, `"extra":1,"order_id"`):                  "data has an unknown member",
		replace(`"type":"payment.succeeded",`, ""):                     "type is required",
		replace(`,"provider_reference":"ref-1"`, ""):                   "data.provider_reference is required",
		replace(`"payment.succeeded"`, `"payment.lost"`):               "type must be payment.succeeded",
		replace(`"payment.succeeded"`, `null`):                         "type must be a string",
		replace(orderID, strings.ToUpper(orderID)):                     "data.order_id must be a UUID",
		replace(`"`+orderID+`"`, `7`):                                  "data.order_id must be a string",
		replace(`"19.90"`, `"19.901"`):                                 "data.amount must have at most two decimal places",
		replace(`"19.90"`, `1e3`):                                      "data.amount must be a plain decimal number",
		replace(`"19.90"`, `-1`):                                       "data.amount must be a plain decimal number",
		replace(`"19.90"`, `0`):                                        "data.amount must be from 0.01",
		replace(`"19.90"`, `true`):                                     "data.amount must be a decimal number",
		replace(`"19.90"`, `{}`):                                       "data.amount must be a decimal number",
		replace("ref-1", `\ud800`):                                     "data.provider_reference has a character that stands for no character",
		replace("ref-1", ``):                                           "data.provider_reference is required",
		replace("ref-1", strings.Repeat("r", order.MaxReferenceLen+1)): "data.provider_reference must have at most",
		`{"type":"payment.succeeded","data":[]}`:                       "data must be a JSON object",
		`{"type":"payment.succeeded","data":7}`:                        "data must be a JSON object",
	} {
		_, err := decode(message.NewMessage("m-1", []byte(body)), "c")
		require.ErrorContains(t, err, fault, body)
		require.NotContains(t, err.Error(), "secret")
	}
	_, err := decode(message.NewMessage("", []byte(good)), "c")
	require.ErrorContains(t, err, "message id is required")
	_, err = decode(message.NewMessage(strings.Repeat("m", order.MaxMessageIDLen+1), []byte(good)), "c")
	require.ErrorContains(t, err, "message id must have at most")
}

// FuzzDecode: whatever bytes come, what is accepted is valid, and decoding it
// again gives the same event.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte(strings.Replace(good, `"19.90"`, "19.9", 1)))
	f.Add([]byte(`{"type":"payment.succeeded","data":{"order_id":{}}}`))
	f.Add([]byte(`{"data":{"amount":[]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := decode(message.NewMessage("m", body), "c")
		if err != nil {
			return
		}
		require.NoError(t, m.Validate())
		again, err := decode(message.NewMessage("m", body), "c")
		require.NoError(t, err)
		require.Equal(t, m, again)
	})
}

// FuzzDelivery: whatever name and headers a message of AMQP or Kafka has, it is
// handled or parked, and what is accepted is valid.
func FuzzDelivery(f *testing.F) {
	f.Add("evt_1", "message_id", "evt_2", []byte(good))
	f.Add("", "_watermill_message_uuid", "evt_1", []byte(good))
	f.Add("\xff", "", strings.Repeat("m", order.MaxMessageIDLen+1), []byte("{}"))
	f.Fuzz(func(t *testing.T, id, header, value string, body []byte) {
		byAMQP, err := lenientMarshaler{}.Unmarshal(amqp091.Delivery{
			Acknowledger: deaf{}, MessageId: id, Headers: amqp091.Table{header: value}, Body: body,
		})
		require.NoError(t, err, "it would be given back for ever")
		byKafka, err := kafka.DefaultMarshaler{}.Unmarshal(&sarama.ConsumerMessage{
			Value: body, Headers: []*sarama.RecordHeader{
				{Key: []byte(kafka.UUIDHeaderKey), Value: []byte(id)}, {Key: []byte(header), Value: []byte(value)},
			},
		})
		require.NoError(t, err)
		for _, m := range []*message.Message{byAMQP, byKafka} {
			if p, err := decode(m, "c"); err == nil {
				require.NoError(t, p.Validate())
				require.Equal(t, messageID(m), p.MessageID)
			}
		}
	})
}

// deaf hears of no acknowledgement.
type deaf struct{ amqp091.Acknowledger }

// FuzzEntry: whatever fields an entry has, there is a message to handle or to
// park.
func FuzzEntry(f *testing.F) {
	f.Add("_watermill_message_uuid", "u", "metadata", "\x81\xa1a\xa1b", "payload", good)
	f.Add("message_id", "evt", "payload", good, "", "")
	f.Add("_watermill_message_uuid", "u", "metadata", "\xdf\xff\xff\xff\xff", "x", "")
	f.Fuzz(func(t *testing.T, k1, v1, k2, v2, k3, v3 string) {
		m, err := entryMessage(map[string]any{k1: v1, k2: v2, k3: v3})
		require.NotNil(t, m)
		if err == nil {
			_, _ = decode(m, "c")
		}
	})
}
