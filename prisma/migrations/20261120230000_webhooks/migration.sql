-- Why: webhooks: endpoints with versioned secrets, events, deliveries with their attempts, recoveries; a sequence
-- number per room. Locks: rooms for the moment of adding a column with a constant default (no rewrite).

ALTER TABLE "rooms" ADD COLUMN "last_sequence" INTEGER NOT NULL DEFAULT 0;

-- A TypeID made here, for rows that are fanned out inside a statement: prefix and the 26 characters of a UUIDv7 in
-- Crockford's base 32. Source: the TypeID specification, version 0.3.
CREATE FUNCTION "callplane_typeid"("prefix" TEXT) RETURNS TEXT LANGUAGE plpgsql VOLATILE PARALLEL SAFE AS $$
DECLARE
    alphabet CONSTANT TEXT := '0123456789abcdefghjkmnpqrstvwxyz';
    bytes BYTEA := uuid_send(gen_random_uuid());
    milliseconds BIGINT := floor(extract(epoch FROM clock_timestamp()) * 1000);
    high BIGINT;
    low BIGINT;
    suffix TEXT := '';
BEGIN
    bytes := overlay(bytes PLACING substring(int8send(milliseconds) FROM 3) FROM 1 FOR 6);
    bytes := set_byte(bytes, 6, (get_byte(bytes, 6) & 15) | 112);
    bytes := set_byte(bytes, 8, (get_byte(bytes, 8) & 63) | 128);
    -- 130 bits in 26 groups of five: two zero bits, then the 128 of the UUID, as two halves of 65.
    FOR position IN REVERSE 25..0 LOOP
        high := 0;
        FOR bit IN 0..4 LOOP
            low := position * 5 + bit - 2;
            high := high * 2 + CASE WHEN low < 0 THEN 0 ELSE (get_byte(bytes, (low / 8)::int) >> (7 - (low % 8)::int)) & 1 END;
        END LOOP;
        suffix := substr(alphabet, high::int + 1, 1) || suffix;
    END LOOP;
    RETURN prefix || '_' || suffix;
END
$$;

CREATE TABLE "webhook_endpoints" (
    "id" TEXT COLLATE "C" NOT NULL,
    "environment_id" TEXT COLLATE "C" NOT NULL,
    "url" TEXT NOT NULL,
    "events" TEXT[],
    "description" TEXT,
    "enabled" BOOLEAN NOT NULL,
    "disabled_reason" TEXT,
    "signing_key_version" INTEGER NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,
    "deleted_at" TIMESTAMPTZ(3),
    "proven" BOOLEAN NOT NULL DEFAULT false,
    "failing_since" TIMESTAMPTZ(3),
    CONSTRAINT "webhook_endpoints_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "webhook_endpoints_url_length" CHECK (char_length("url") BETWEEN 1 AND 2048),
    CONSTRAINT "webhook_endpoints_events" CHECK (cardinality("events") >= 1),
    CONSTRAINT "webhook_endpoints_version" CHECK ("signing_key_version" >= 1),
    CONSTRAINT "webhook_endpoints_environment_id_fkey" FOREIGN KEY ("environment_id") REFERENCES "environments"("id") ON DELETE RESTRICT ON UPDATE RESTRICT
);
CREATE INDEX "webhook_endpoints_environment_id_id_idx" ON "webhook_endpoints"("environment_id", "id" DESC);
-- The fan-out of every event: the endpoints that an environment has now.
CREATE INDEX "webhook_endpoints_fan_out_idx" ON "webhook_endpoints"("environment_id") WHERE "deleted_at" IS NULL;
-- The sweep: endpoints that were removed lately, whose deliveries end.
CREATE INDEX "webhook_endpoints_deleted_idx" ON "webhook_endpoints"("deleted_at") WHERE "deleted_at" IS NOT NULL;

CREATE TABLE "webhook_secrets" (
    "endpoint_id" TEXT COLLATE "C" NOT NULL,
    "version" INTEGER NOT NULL,
    "secret_sealed" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    CONSTRAINT "webhook_secrets_pkey" PRIMARY KEY ("endpoint_id", "version"),
    CONSTRAINT "webhook_secrets_version" CHECK ("version" >= 1),
    CONSTRAINT "webhook_secrets_endpoint_id_fkey" FOREIGN KEY ("endpoint_id") REFERENCES "webhook_endpoints"("id") ON DELETE CASCADE ON UPDATE RESTRICT
);

CREATE TABLE "events" (
    "id" TEXT COLLATE "C" NOT NULL,
    "environment_id" TEXT COLLATE "C" NOT NULL,
    "type" TEXT NOT NULL,
    "room_id" TEXT COLLATE "C",
    "sequence" INTEGER,
    "body" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "transaction_id" BIGINT NOT NULL DEFAULT ((pg_current_xact_id())::text)::bigint,
    CONSTRAINT "events_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "events_sequence" CHECK (("room_id" IS NULL) = ("sequence" IS NULL) AND "sequence" >= 1)
);
-- The list of an environment, and that of a room: gap-free, so no number twice.
CREATE INDEX "events_environment_id_transaction_id_id_idx" ON "events"("environment_id", "transaction_id", "id");
CREATE UNIQUE INDEX "events_room_sequence_key" ON "events"("room_id", "sequence") WHERE "room_id" IS NOT NULL;
CREATE INDEX "events_created_at_idx" ON "events"("created_at");

CREATE TABLE "webhook_deliveries" (
    "id" TEXT COLLATE "C" NOT NULL,
    "environment_id" TEXT COLLATE "C" NOT NULL,
    "endpoint_id" TEXT COLLATE "C" NOT NULL,
    "event_id" TEXT COLLATE "C" NOT NULL,
    "event_type" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "failure_reason" TEXT,
    "replay_count" INTEGER NOT NULL DEFAULT 0,
    "run_attempts" INTEGER NOT NULL DEFAULT 0,
    "run_started_at" TIMESTAMPTZ(3) NOT NULL DEFAULT transaction_timestamp(),
    "url" TEXT,
    "secret_version" INTEGER,
    "due_at" TIMESTAMPTZ(3) NOT NULL DEFAULT transaction_timestamp(),
    "woken_at" TIMESTAMPTZ(3) NOT NULL DEFAULT transaction_timestamp(),
    "wake_ups" INTEGER NOT NULL DEFAULT 1,
    "lease_token" UUID,
    "lease_expires_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "completed_at" TIMESTAMPTZ(3),
    CONSTRAINT "webhook_deliveries_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "webhook_deliveries_status" CHECK ("status" IN ('pending', 'delivering', 'succeeded', 'failed')),
    CONSTRAINT "webhook_deliveries_failure_reason" CHECK ("failure_reason" IN ('attempts_exhausted', 'rejected', 'unsafe_destination', 'run_expired', 'endpoint_deleted')),
    CONSTRAINT "webhook_deliveries_failed" CHECK (("status" = 'failed') = ("failure_reason" IS NOT NULL)),
    CONSTRAINT "webhook_deliveries_replay_count" CHECK ("replay_count" BETWEEN 0 AND 100),
    CONSTRAINT "webhook_deliveries_run_attempts" CHECK ("run_attempts" BETWEEN 0 AND 8),
    CONSTRAINT "webhook_deliveries_pinned" CHECK (("url" IS NULL) = ("secret_version" IS NULL)),
    CONSTRAINT "webhook_deliveries_lease" CHECK (("lease_token" IS NULL) = ("lease_expires_at" IS NULL) AND ("status" = 'delivering') = ("lease_token" IS NOT NULL)),
    CONSTRAINT "webhook_deliveries_endpoint_id_fkey" FOREIGN KEY ("endpoint_id") REFERENCES "webhook_endpoints"("id") ON DELETE RESTRICT ON UPDATE RESTRICT,
    CONSTRAINT "webhook_deliveries_event_id_fkey" FOREIGN KEY ("event_id") REFERENCES "events"("id") ON DELETE RESTRICT ON UPDATE RESTRICT
);
CREATE INDEX "webhook_deliveries_endpoint_id_id_idx" ON "webhook_deliveries"("endpoint_id", "id" DESC);
CREATE INDEX "webhook_deliveries_event_id_idx" ON "webhook_deliveries"("event_id");
-- The sweep: open rows that are due. Stays as small as the backlog.
CREATE INDEX "webhook_deliveries_open_idx" ON "webhook_deliveries"("due_at") WHERE "status" IN ('pending', 'delivering');
-- Leases that ran out: as small as what is under way, however long the backlog is.
CREATE INDEX "webhook_deliveries_leased_idx" ON "webhook_deliveries"("lease_expires_at") WHERE "status" = 'delivering';
-- The end of runs that are too old, and of an endpoint's open deliveries.
CREATE INDEX "webhook_deliveries_open_run_idx" ON "webhook_deliveries"("run_started_at") WHERE "status" IN ('pending', 'delivering');
CREATE INDEX "webhook_deliveries_open_endpoint_idx" ON "webhook_deliveries"("endpoint_id") WHERE "status" IN ('pending', 'delivering');
-- Recoveries read the failed ones of a window; retention the oldest terminal ones.
CREATE INDEX "webhook_deliveries_failed_idx" ON "webhook_deliveries"("endpoint_id", "id") WHERE "status" = 'failed';
CREATE INDEX "webhook_deliveries_completed_idx" ON "webhook_deliveries"("completed_at") WHERE "status" IN ('succeeded', 'failed');

CREATE TABLE "webhook_attempts" (
    "id" TEXT COLLATE "C" NOT NULL,
    "delivery_id" TEXT COLLATE "C" NOT NULL,
    "replay_count" INTEGER NOT NULL,
    "attempt" INTEGER NOT NULL,
    "url" TEXT NOT NULL,
    "signing_key_version" INTEGER NOT NULL,
    "started_at" TIMESTAMPTZ(3) NOT NULL,
    "duration_ms" INTEGER NOT NULL,
    "outcome" TEXT NOT NULL,
    "error_code" TEXT,
    "status_code" INTEGER,
    "address" TEXT,
    "dns_ms" INTEGER,
    "connect_ms" INTEGER,
    "tls_ms" INTEGER,
    "first_byte_ms" INTEGER,
    "response_body" TEXT,
    "response_truncated" BOOLEAN NOT NULL DEFAULT false,
    CONSTRAINT "webhook_attempts_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "webhook_attempts_outcome" CHECK ("outcome" IN ('success', 'dns', 'connect', 'tls', 'timeout', 'response', 'blocked')),
    CONSTRAINT "webhook_attempts_attempt" CHECK ("attempt" BETWEEN 1 AND 8),
    CONSTRAINT "webhook_attempts_blocked" CHECK ("outcome" <> 'blocked' OR "address" IS NULL),
    CONSTRAINT "webhook_attempts_delivery_id_fkey" FOREIGN KEY ("delivery_id") REFERENCES "webhook_deliveries"("id") ON DELETE CASCADE ON UPDATE RESTRICT
);
CREATE INDEX "webhook_attempts_delivery_id_id_idx" ON "webhook_attempts"("delivery_id", "id");

CREATE TABLE "webhook_recoveries" (
    "id" TEXT COLLATE "C" NOT NULL,
    "environment_id" TEXT COLLATE "C" NOT NULL,
    "endpoint_id" TEXT COLLATE "C" NOT NULL,
    "since" TIMESTAMPTZ(3) NOT NULL,
    "until" TIMESTAMPTZ(3) NOT NULL,
    "dry_run" BOOLEAN NOT NULL,
    "status" TEXT NOT NULL,
    "matched" INTEGER NOT NULL DEFAULT 0,
    "replayed" INTEGER NOT NULL DEFAULT 0,
    "skipped" INTEGER NOT NULL DEFAULT 0,
    "position" TEXT COLLATE "C",
    "lease_token" UUID,
    "lease_expires_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "completed_at" TIMESTAMPTZ(3),
    CONSTRAINT "webhook_recoveries_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "webhook_recoveries_status" CHECK ("status" IN ('pending', 'completed', 'cancelled')),
    CONSTRAINT "webhook_recoveries_lease" CHECK (("lease_token" IS NULL) = ("lease_expires_at" IS NULL)),
    CONSTRAINT "webhook_recoveries_endpoint_id_fkey" FOREIGN KEY ("endpoint_id") REFERENCES "webhook_endpoints"("id") ON DELETE RESTRICT ON UPDATE RESTRICT
);
CREATE INDEX "webhook_recoveries_endpoint_id_idx" ON "webhook_recoveries"("endpoint_id");
CREATE INDEX "webhook_recoveries_pending_idx" ON "webhook_recoveries"("created_at") WHERE "status" = 'pending';
