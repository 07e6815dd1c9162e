-- +goose Up

-- Nothing reads it: what was consumed is kept for ever. MySQL has no way to drop
-- an index only if it is there.
SET @step = (
  SELECT IF(COUNT(*) = 0, 'DO 0', 'ALTER TABLE consumed_messages DROP KEY idx_consumed_created')
  FROM information_schema.STATISTICS
  WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'consumed_messages' AND INDEX_NAME = 'idx_consumed_created'
);
PREPARE step FROM @step;
EXECUTE step;
DEALLOCATE PREPARE step;

-- +goose Down
ALTER TABLE consumed_messages ADD KEY idx_consumed_created (created_at);
