-- Why: a recovery also brings pending deliveries forward (docs/decisions/0030). It counts them in `woken`, and keeps the
-- ids of deliveries that were being sent when their turn came. A recovery of the previous release leaves pending
-- deliveries alone, hence the default of `include_pending`. Recoveries read the open deliveries of an endpoint in the
-- order of their ids, so their index has the id, too. `failing_reported_since` lets one of several workers log that an
-- endpoint fails, and that it works again.
-- Locks: webhook_endpoints and webhook_recoveries for the moment of adding columns with constant defaults, which rewrites
-- no row; webhook_deliveries against writes while the index is built, which reads the table once.

ALTER TABLE "webhook_endpoints" ADD COLUMN "failing_reported_since" TIMESTAMPTZ(3);

ALTER TABLE "webhook_recoveries" ADD COLUMN "include_pending" BOOLEAN NOT NULL DEFAULT false,
ADD COLUMN "woken" INTEGER NOT NULL DEFAULT 0,
ADD COLUMN "in_flight" TEXT[] NOT NULL DEFAULT ARRAY[]::TEXT[];

CREATE INDEX "webhook_deliveries_open_endpoint_id_idx" ON "webhook_deliveries"("endpoint_id", "id") WHERE "status" IN ('pending', 'delivering');
-- contract: the new index serves every statement that used this one, also those of the previous release.
DROP INDEX "webhook_deliveries_open_endpoint_idx";
