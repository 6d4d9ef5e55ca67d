-- Why: webhook workers claim the oldest due deliveries of an endpoint, first attempts and retries apart, and list the
-- endpoints that have any (docs/decisions/0015). The index serves both; it holds pending deliveries only, and says so in
-- words of its own, so that PostgreSQL takes no other index of open deliveries for these statements. `slot_ms` tells
-- other workers and their successors how long an endpoint's attempts take.
-- Locks: webhook_endpoints for the moment of adding a column without a default; webhook_deliveries against writes while
-- the index is built, which reads the table once.

ALTER TABLE "webhook_endpoints" ADD COLUMN "slot_ms" INTEGER;

CREATE INDEX "webhook_deliveries_due_idx" ON "webhook_deliveries"("endpoint_id", ("run_attempts" > 0), "due_at") WHERE ("status" || '') = 'pending';
