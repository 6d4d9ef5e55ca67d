-- Why: media servers register themselves (docs/decisions/0044).
-- Locks: media_nodes for the moment of adding columns without a default, and constraints that are validated later. The
-- previous release neither reads nor writes the columns.

ALTER TABLE "media_nodes"
    ADD COLUMN "url" TEXT,
    ADD COLUMN "capacity" INTEGER,
    ADD COLUMN "registered_at" TIMESTAMPTZ(3),
    ADD COLUMN "heartbeat_at" TIMESTAMPTZ(3),
    ADD CONSTRAINT "media_nodes_url" CHECK ("url" ~ '^wss?://' AND length("url") <= 2048) NOT VALID,
    ADD CONSTRAINT "media_nodes_capacity" CHECK ("capacity" BETWEEN 1 AND 1000000) NOT VALID,
    ADD CONSTRAINT "media_nodes_registered" CHECK (("url" IS NULL) = ("registered_at" IS NULL) AND ("url" IS NOT NULL OR ("capacity" IS NULL AND "heartbeat_at" IS NULL))) NOT VALID;
