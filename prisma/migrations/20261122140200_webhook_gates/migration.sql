-- Why: `webhook_gates` has a row for each endpoint with an order or a limit, on which its claims go one at a time
-- (docs/decisions/0031). The previous release does not know the table.
-- Locks: writes to webhook_endpoints for the moment of adding a foreign key from an empty table.

CREATE TABLE IF NOT EXISTS "webhook_gates" (
    "endpoint_id" TEXT COLLATE "C" NOT NULL,
    "version" BIGINT NOT NULL DEFAULT 0,
    "next_at" TIMESTAMPTZ(6) NOT NULL DEFAULT transaction_timestamp(),
    "in_flight" TEXT[] COLLATE "C" NOT NULL DEFAULT '{}',
    CONSTRAINT "webhook_gates_pkey" PRIMARY KEY ("endpoint_id"),
    CONSTRAINT "webhook_gates_endpoint_id_fkey" FOREIGN KEY ("endpoint_id") REFERENCES "webhook_endpoints"("id") ON DELETE CASCADE ON UPDATE RESTRICT
) WITH (fillfactor = 50);
