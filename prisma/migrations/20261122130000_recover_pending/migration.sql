-- Why: a recovery also brings pending deliveries forward (docs/decisions/0030). It counts them in `woken`, and keeps the
-- ids of deliveries that were being sent when their turn came. A recovery of the previous release leaves pending
-- deliveries alone, hence the default of `include_pending`.
-- Locks: webhook_recoveries for the moment of adding columns with constant defaults, which rewrites no row.

ALTER TABLE "webhook_recoveries" ADD COLUMN "include_pending" BOOLEAN NOT NULL DEFAULT false,
ADD COLUMN "woken" INTEGER NOT NULL DEFAULT 0,
ADD COLUMN "in_flight" TEXT[] NOT NULL DEFAULT ARRAY[]::TEXT[];
