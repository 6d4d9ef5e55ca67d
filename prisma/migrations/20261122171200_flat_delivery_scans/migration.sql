-- Why: scans by time need indexes that PostgreSQL cannot confuse with others (docs/decisions/0039). When statistics know
-- hardly any open delivery, it read the finished ones of all types through webhook_deliveries_filtered_idx instead.
-- Locks: none that reads or writes wait for; the indexes are built concurrently.
-- contract: the sweeps of the previous release read the open deliveries through webhook_deliveries_open_endpoint_id_idx.

CREATE INDEX CONCURRENTLY "webhook_deliveries_due_at_idx" ON "webhook_deliveries"("due_at") WHERE ("status" || '') = 'pending';
CREATE INDEX CONCURRENTLY "webhook_deliveries_lease_expires_at_idx" ON "webhook_deliveries"("lease_expires_at") WHERE "lease_expires_at" IS NOT NULL;
CREATE INDEX CONCURRENTLY "webhook_deliveries_pending_run_idx" ON "webhook_deliveries"("run_started_at") WHERE ("status" || '') = 'pending';
DROP INDEX CONCURRENTLY "webhook_deliveries_open_idx";
DROP INDEX CONCURRENTLY "webhook_deliveries_leased_idx";
DROP INDEX CONCURRENTLY "webhook_deliveries_open_run_idx";
