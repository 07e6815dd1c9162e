package consumer

import (
	"encoding/json"
	"errors"

	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/ThreeDotsLabs/watermill/message"
)

// payloadField is where both forms of an entry keep the body.
const payloadField = "payload"

var errEntry = errors.New("the entry has neither a Watermill UUID nor the fields message_id and payload")

// entryMessage reads the fields of an entry: those of Watermill's Redis Streams
// publisher, or message_id and payload, as any client can write them. It always
// returns a message, for what cannot be read must be parked.
func entryMessage(fields map[string]any) (*message.Message, error) {
	if _, ok := fields[redisstream.UUIDHeaderKey]; ok {
		m, err := redisstream.DefaultMarshallerUnmarshaller{}.Unmarshal(fields)
		if err == nil {
			return m, nil
		}
		return unreadable(fields), errors.New("the metadata of the entry cannot be read")
	}
	id, _ := fields[MessageIDKey].(string)
	payload, ok := fields[payloadField].(string)
	if id == "" || !ok {
		return unreadable(fields), errEntry
	}
	return message.NewMessage(id, []byte(payload)), nil
}

// unreadable keeps what there is of an entry: its payload, or all its fields.
func unreadable(fields map[string]any) *message.Message {
	payload, ok := fields[payloadField].(string)
	if !ok {
		all, err := json.Marshal(fields)
		if err != nil {
			all = nil // fields are texts; were they not, the entry's name is kept
		}
		payload = string(all)
	}
	id, _ := fields[redisstream.UUIDHeaderKey].(string)
	if id == "" {
		id, _ = fields[MessageIDKey].(string)
	}
	return message.NewMessage(id, []byte(payload))
}
