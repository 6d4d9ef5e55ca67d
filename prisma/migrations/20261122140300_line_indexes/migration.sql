-- Why: the first open delivery of a room, and the deliveries that wait for an earlier one, are found at once
-- (docs/decisions/0031).
-- Locks: none that reads or writes wait for; indexes are built concurrently, and constraints are validated under a lock
-- that only other migrations and VACUUM wait for.

ALTER TABLE "webhook_endpoints" VALIDATE CONSTRAINT "webhook_endpoints_ordering";
ALTER TABLE "webhook_endpoints" VALIDATE CONSTRAINT "webhook_endpoints_max_per_second";
ALTER TABLE "webhook_endpoints" VALIDATE CONSTRAINT "webhook_endpoints_max_concurrent";

-- The open deliveries of an endpoint, and those of a room in their order: first runs apart from replays. The condition
-- has words of its own, so that PostgreSQL takes no other index of open deliveries for statements with this condition.
CREATE INDEX CONCURRENTLY "webhook_deliveries_line_idx" ON "webhook_deliveries"("endpoint_id", "room_id", ("replay_count" > 0), "sequence") WHERE lower("status") IN ('pending', 'delivering');
-- Deliveries that wait for an earlier one of their room. Empty while no endpoint has an order.
CREATE INDEX CONCURRENTLY "webhook_deliveries_parked_idx" ON "webhook_deliveries"("endpoint_id", "room_id", ("replay_count" > 0), "sequence") WHERE ("status" || '') = 'pending' AND "due_at" = '9999-12-31 00:00:00+00'::timestamptz;
