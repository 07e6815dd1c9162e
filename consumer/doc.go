// Package consumer reads payment events from a message broker and gives each
// of them its effect once.
//
// A [Consumer] takes messages from any Watermill subscriber, decodes them
// strictly and hands them to [order.Lifecycle], which commits the effect and
// the message id together. Only then is a message acknowledged, so whatever
// dies in between, the message comes again and is recognised. What can never
// succeed goes to a [Parker], with the reason, before it is acknowledged; an
// unavailable ledger never parks anything. No order between messages is
// assumed.
//
// [Open] connects to a broker. Redis Streams have a subscriber of their own,
// [StreamSubscriber]: Watermill's keeps no count of deliveries that survives a
// restart, repeats a returned message ahead of all others, and ends at an entry
// that it cannot read. So has Kafka: Watermill's does not tell what may have been
// delivered before, keeps its partition from the next member while a message
// waits, and is silent about a broker that is away.
//
// The package must not know HTTP or SQL, and of ours it imports only order.
package consumer
