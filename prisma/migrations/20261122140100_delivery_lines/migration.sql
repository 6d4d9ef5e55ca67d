-- Why: a delivery knows the place of its event in the room (docs/decisions/0031). Deliveries that the previous release
-- writes have none, and take part in no order.
-- Locks: webhook_deliveries for the moment of adding columns without a default.

ALTER TABLE "webhook_deliveries"
    ADD COLUMN IF NOT EXISTS "room_id" TEXT COLLATE "C",
    ADD COLUMN IF NOT EXISTS "sequence" INTEGER;
