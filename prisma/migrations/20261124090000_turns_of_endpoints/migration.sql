-- Temporary, until the baseline has it.
ALTER TABLE "webhook_endpoints" ADD COLUMN "next_attempt_at" TIMESTAMPTZ(6) NOT NULL DEFAULT '-infinity';
DROP TABLE "webhook_gates";
DROP INDEX "webhook_deliveries_due_idx";
DROP INDEX "webhook_deliveries_due_time_idx";
DROP INDEX "webhook_deliveries_pending_run_idx";
DROP INDEX "webhook_deliveries_parked_idx";
DROP INDEX "webhook_deliveries_line_idx";
ALTER TABLE "webhook_deliveries" DROP COLUMN "woken_at", DROP COLUMN "wake_ups";
CREATE INDEX "webhook_deliveries_due_idx" ON "webhook_deliveries"("endpoint_id", "due_at") WHERE "status" = 'pending';
CREATE INDEX "webhook_deliveries_pending_run_idx" ON "webhook_deliveries"("run_started_at") WHERE "status" = 'pending';
CREATE INDEX "webhook_deliveries_line_idx" ON "webhook_deliveries"("endpoint_id", "room_id", ("replay_count" > 0), "sequence") WHERE "status" IN ('pending', 'delivering');
CREATE INDEX "webhook_deliveries_in_flight_idx" ON "webhook_deliveries"("endpoint_id", "room_id") WHERE "status" = 'delivering';
