-- Why: lists of deliveries filter by failure reason at any size. Only failed deliveries have one, so a delivery that
-- succeeds costs nothing more. The columns are those of webhook_deliveries_filtered_idx with the reason for the status.
-- Locks: none that reads or writes wait for; the index is built concurrently.

CREATE INDEX CONCURRENTLY "webhook_deliveries_reason_idx" ON "webhook_deliveries"("endpoint_id", "failure_reason", "event_type", ("id" || '') DESC) WHERE "failure_reason" IS NOT NULL;
