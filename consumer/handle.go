package consumer

import (
	"context"
	"time"

	"github.com/ThreeDotsLabs/watermill-amqp/v3/pkg/amqp"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/oncegate/oncegate/order"
)

// Reasons to give a message back that say nothing about it.
const (
	unparkable Reason = "unparkable" // the parker did not take it
	stopping   Reason = "stopping"   // it came while the consumer ended
)

// handle deals with one delivery: at its end the message is acknowledged or
// given back. What was begun is brought to an end after ctx has ended, too.
func (c *Consumer) handle(ctx context.Context, m *message.Message) {
	payment, err := decode(m, c.o.Name)
	if err != nil {
		count, _ := c.deliveries(m)
		c.park(ctx, m, Undecodable, err.Error(), count)
		return
	}
	count, again := c.deliveries(m)
	if count > int64(c.o.MaxDeliveries) {
		c.park(ctx, m, Exhausted, "it was delivered before and no delivery came to an end", count)
		return
	}
	if flawAcknowledgedFirst {
		c.acknowledge(m)
	}
	result, err := c.apply(ctx, payment)
	if err == nil {
		c.recovered(ctx)
		c.settle(ctx, m, &payment, &result, again)
		return
	}
	reason := reasonOf(err)
	switch {
	case reason == unavailable:
		c.waitForLedger(ctx, err)
		c.giveBack(m, reason, 0)
	case count >= int64(c.o.MaxDeliveries):
		c.recovered(ctx)
		c.park(ctx, m, reason, err.Error(), count)
	default:
		c.recovered(ctx)
		c.postpone(ctx, m, reason, backoff(c.o.RetryDelay, c.o.MaxRetryDelay, count))
	}
}

// deliveries counts this delivery and returns how many there were, and whether
// there was any before, those that do not count among them: by the broker's count,
// which survives restarts, or else by our own.
func (c *Consumer) deliveries(m *message.Message) (count int64, again bool) {
	if d := deliveryOf(m); d != nil {
		return d.count, d.again
	}
	count, again = c.attempts.add(messageID(m), 1)
	return count, again || amqp.IsMessageRedelivered(m)
}

func (c *Consumer) apply(ctx context.Context, payment order.PaymentMessage) (order.Transition, error) {
	ctx, cancel := c.detached(ctx)
	defer cancel()
	return c.o.Lifecycle.Apply(ctx, payment)
}

// detached gives work on the message in hand its own time limit.
func (c *Consumer) detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), c.o.Timeout)
}

// settle acknowledges what the ledger has committed. A duplicate is committed
// too: the acknowledgement of its first delivery was lost.
func (c *Consumer) settle(ctx context.Context, m *message.Message, payment *order.PaymentMessage, result *order.Transition, again bool) {
	effect := string(result.Effect)
	// Whoever had a message before may not have lived to tell.
	if result.RefundOwed && (again || !result.Duplicate) {
		c.metrics.refundsOwed.Inc()
		c.o.Logger.WarnContext(ctx, "a payment was taken that its order cannot use: a refund is owed",
			"effect", effect, "refund_owed", true, "message_id", payment.MessageID, "order_id", payment.OrderID.String(),
			"duplicate", result.Duplicate)
	}
	switch {
	case result.Duplicate:
		effect = effectDuplicate
	case result.Effect == order.Parked:
		c.metrics.parked[IDReused].Inc()
		c.o.Logger.WarnContext(ctx, "a message id came with another content; the ledger keeps it aside",
			"message_id", payment.MessageID, "order_id", payment.OrderID.String())
	}
	if counter := c.metrics.messages[effect]; counter != nil {
		counter.Inc()
	}
	c.acknowledge(m)
}

func (c *Consumer) acknowledge(m *message.Message) {
	c.attempts.forget(messageID(m))
	m.Ack()
}

// park keeps a message aside and then acknowledges it. One that cannot be
// parked comes again, and is parked for the same reason then.
func (c *Consumer) park(ctx context.Context, m *message.Message, reason Reason, detail string, count int64) {
	p := Parking{
		Reason: reason, Detail: detail, Topic: c.o.Topic, Consumer: c.o.Name, MessageID: messageID(m), Deliveries: count,
	}
	if d := deliveryOf(m); d != nil {
		p.Entry = d.entry
	}
	attempt, cancel := c.detached(ctx)
	defer cancel()
	if err := c.o.Parker.Park(attempt, m, p); err != nil {
		c.o.Logger.WarnContext(ctx, "a message could not be parked and stays in its topic", "reason", string(reason), "error", err)
		c.postpone(ctx, m, unparkable, c.o.outageDelay())
		return
	}
	c.metrics.parked[reason].Inc()
	c.o.Logger.WarnContext(ctx, "a message was parked", "reason", string(reason), "detail", detail,
		"message_id", p.MessageID, "entry", p.Entry, "deliveries", count)
	c.acknowledge(m)
}

// postpone gives a message back for a later delivery: at once where the broker
// can wait, and after the wait where it would deliver it again straight away.
func (c *Consumer) postpone(ctx context.Context, m *message.Message, reason Reason, delay time.Duration) {
	if deliveryOf(m) == nil {
		pause(ctx, delay)
	}
	c.giveBack(m, reason, delay)
}

func (c *Consumer) giveBack(m *message.Message, reason Reason, delay time.Duration) {
	counts := reason == OrderNotFound || reason == Refused
	if d := deliveryOf(m); d != nil {
		d.delay, d.uncounted = delay, !counts
	} else if !counts && reason != stopping { // which was not counted
		c.attempts.add(messageID(m), -1)
	}
	c.metrics.redeliveries[reason].Inc()
	m.Nack()
}

// waitForLedger holds the message in hand while the ledger is away: its
// neighbours would fare no better.
func (c *Consumer) waitForLedger(ctx context.Context, err error) {
	failures := c.outage.Add(1)
	if failures == 1 {
		c.o.Logger.WarnContext(ctx, "the ledger is unavailable; messages wait", "error", err)
	}
	pause(ctx, backoff(c.o.RetryDelay, c.o.outageDelay(), failures))
}

// recovered ends an outage: the ledger has answered.
func (c *Consumer) recovered(ctx context.Context) {
	if c.outage.Load() != 0 && c.outage.Swap(0) != 0 {
		c.o.Logger.InfoContext(ctx, "the ledger answers again")
	}
}
