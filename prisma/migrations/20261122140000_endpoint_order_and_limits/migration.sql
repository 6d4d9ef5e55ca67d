-- Why: an endpoint may get the events of a room in order, at a limited rate and concurrency, and with the headers of
-- Standard Webhooks (docs/decisions/0031). A delivery knows the place of its event in the room, and an index of open
-- deliveries has that place, so that the first one of a room is found at once. `webhook_gates` has a row for each
-- endpoint with an order or a limit, on which its claims go one at a time.
-- Locks: webhook_endpoints for the moment of adding columns with constant defaults, and to check three constraints;
-- webhook_deliveries against writes while two indexes are built, each of which reads the table once. The previous
-- release neither reads nor writes the columns and the table; deliveries that it writes take part in no order.

ALTER TABLE "webhook_endpoints"
    ADD COLUMN "ordering" TEXT NOT NULL DEFAULT 'none',
    ADD COLUMN "max_per_second" INTEGER,
    ADD COLUMN "max_concurrent" INTEGER,
    ADD COLUMN "standard_webhooks" BOOLEAN NOT NULL DEFAULT false,
    ADD CONSTRAINT "webhook_endpoints_ordering" CHECK ("ordering" IN ('none', 'room')),
    ADD CONSTRAINT "webhook_endpoints_max_per_second" CHECK ("max_per_second" BETWEEN 1 AND 1000),
    ADD CONSTRAINT "webhook_endpoints_max_concurrent" CHECK ("max_concurrent" BETWEEN 1 AND 100);

CREATE TABLE "webhook_gates" (
    "endpoint_id" TEXT COLLATE "C" NOT NULL,
    "version" BIGINT NOT NULL DEFAULT 0,
    "next_at" TIMESTAMPTZ(6) NOT NULL DEFAULT transaction_timestamp(),
    "in_flight" TEXT[] COLLATE "C" NOT NULL DEFAULT '{}',
    CONSTRAINT "webhook_gates_pkey" PRIMARY KEY ("endpoint_id"),
    CONSTRAINT "webhook_gates_endpoint_id_fkey" FOREIGN KEY ("endpoint_id") REFERENCES "webhook_endpoints"("id") ON DELETE CASCADE ON UPDATE RESTRICT
) WITH (fillfactor = 50);

ALTER TABLE "webhook_deliveries"
    ADD COLUMN "room_id" TEXT COLLATE "C",
    ADD COLUMN "sequence" INTEGER;

-- The open deliveries of an endpoint, and those of a room in their order: first runs apart from replays. The condition
-- has words of its own, so that PostgreSQL takes no other index of open deliveries for statements with this condition.
CREATE INDEX "webhook_deliveries_line_idx" ON "webhook_deliveries"("endpoint_id", "room_id", ("replay_count" > 0), "sequence") WHERE lower("status") IN ('pending', 'delivering');
-- Deliveries that wait for an earlier one of their room. Empty while no endpoint has an order.
CREATE INDEX "webhook_deliveries_parked_idx" ON "webhook_deliveries"("endpoint_id", "room_id", ("replay_count" > 0), "sequence") WHERE ("status" || '') = 'pending' AND "due_at" = '9999-12-31 00:00:00+00'::timestamptz;
