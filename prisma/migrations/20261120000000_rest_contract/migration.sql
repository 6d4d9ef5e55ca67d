-- Why: the first schema: tenants, keys, rooms, participants, tokens, sessions, durable operations, signing keys,
-- idempotency. Locks: nothing that exists.
-- Ids are compared byte by byte (COLLATE "C"): TypeIDs sort by time that way whatever the database's collation is.

CREATE TABLE "projects" (
    "id" TEXT COLLATE "C" NOT NULL,
    "name" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    CONSTRAINT "projects_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "projects_name_length" CHECK (char_length("name") BETWEEN 1 AND 120)
);

CREATE TABLE "environments" (
    "id" TEXT COLLATE "C" NOT NULL,
    "project_id" TEXT COLLATE "C" NOT NULL,
    "name" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    CONSTRAINT "environments_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "environments_name_length" CHECK (char_length("name") BETWEEN 1 AND 120),
    CONSTRAINT "environments_project_id_fkey" FOREIGN KEY ("project_id") REFERENCES "projects"("id") ON DELETE RESTRICT ON UPDATE RESTRICT
);
CREATE UNIQUE INDEX "environments_project_id_name_key" ON "environments"("project_id", "name");

CREATE TABLE "api_keys" (
    "id" TEXT COLLATE "C" NOT NULL,
    "environment_id" TEXT COLLATE "C" NOT NULL,
    "type" TEXT NOT NULL,
    "name" TEXT,
    "key_hash" BYTEA NOT NULL,
    "key_hint" TEXT NOT NULL,
    "scopes" TEXT[],
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "expires_at" TIMESTAMPTZ(3),
    "revoked_at" TIMESTAMPTZ(3),
    CONSTRAINT "api_keys_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "api_keys_type" CHECK ("type" IN ('secret', 'publishable')),
    CONSTRAINT "api_keys_hash_length" CHECK (octet_length("key_hash") = 32),
    CONSTRAINT "api_keys_environment_id_fkey" FOREIGN KEY ("environment_id") REFERENCES "environments"("id") ON DELETE RESTRICT ON UPDATE RESTRICT
);
CREATE UNIQUE INDEX "api_keys_key_hash_key" ON "api_keys"("key_hash");
CREATE INDEX "api_keys_environment_id_id_idx" ON "api_keys"("environment_id", "id");

CREATE TABLE "rooms" (
    "id" TEXT COLLATE "C" NOT NULL,
    "environment_id" TEXT COLLATE "C" NOT NULL,
    "name" TEXT NOT NULL,
    "metadata" JSONB NOT NULL,
    "status" TEXT NOT NULL,
    "max_participants" INTEGER NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "started_at" TIMESTAMPTZ(3),
    "ended_at" TIMESTAMPTZ(3),
    CONSTRAINT "rooms_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "rooms_name_length" CHECK (char_length("name") BETWEEN 1 AND 120),
    CONSTRAINT "rooms_metadata_object" CHECK (jsonb_typeof("metadata") = 'object'),
    CONSTRAINT "rooms_status" CHECK ("status" IN ('created', 'active', 'ending', 'ended')),
    CONSTRAINT "rooms_max_participants" CHECK ("max_participants" BETWEEN 1 AND 100000),
    CONSTRAINT "rooms_ended_at" CHECK (("status" = 'ended') = ("ended_at" IS NOT NULL)),
    CONSTRAINT "rooms_started_at" CHECK ("status" <> 'active' OR "started_at" IS NOT NULL),
    CONSTRAINT "rooms_environment_id_fkey" FOREIGN KEY ("environment_id") REFERENCES "environments"("id") ON DELETE RESTRICT ON UPDATE RESTRICT
);
-- The two lists, newest first, with and without a status.
CREATE INDEX "rooms_environment_id_id_idx" ON "rooms"("environment_id", "id" DESC);
CREATE INDEX "rooms_environment_id_status_id_idx" ON "rooms"("environment_id", "status", "id" DESC);

CREATE TABLE "participants" (
    "id" TEXT COLLATE "C" NOT NULL,
    "environment_id" TEXT COLLATE "C" NOT NULL,
    "room_id" TEXT COLLATE "C" NOT NULL,
    "external_id" TEXT,
    "name" TEXT NOT NULL,
    "metadata" JSONB NOT NULL,
    "role" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "token_expires_at" TIMESTAMPTZ(3) NOT NULL,
    "connected_at" TIMESTAMPTZ(3),
    "left_at" TIMESTAMPTZ(3),
    "removed_at" TIMESTAMPTZ(3),
    CONSTRAINT "participants_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "participants_name_length" CHECK (char_length("name") BETWEEN 1 AND 120),
    CONSTRAINT "participants_external_id_length" CHECK (char_length("external_id") BETWEEN 1 AND 255),
    CONSTRAINT "participants_metadata_object" CHECK (jsonb_typeof("metadata") = 'object'),
    CONSTRAINT "participants_role" CHECK ("role" IN ('participant')),
    CONSTRAINT "participants_room_id_fkey" FOREIGN KEY ("room_id") REFERENCES "rooms"("id") ON DELETE RESTRICT ON UPDATE RESTRICT
);
-- The participant list (those who connected, latest first) and, by its prefix, the live ones of a room.
CREATE INDEX "participants_list_idx" ON "participants"("room_id", "connected_at" DESC, "id" DESC) WHERE "connected_at" IS NOT NULL;
CREATE INDEX "participants_present_idx" ON "participants"("room_id", "connected_at" DESC, "id" DESC) WHERE "connected_at" IS NOT NULL AND "left_at" IS NULL;
-- Ending a room visits those who have not left, connected or not.
CREATE INDEX "participants_not_left_idx" ON "participants"("room_id") WHERE "left_at" IS NULL;

CREATE TABLE "participant_tokens" (
    "id" TEXT COLLATE "C" NOT NULL,
    "participant_id" TEXT COLLATE "C" NOT NULL,
    "permissions" TEXT[],
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "revoked_at" TIMESTAMPTZ(3),
    CONSTRAINT "participant_tokens_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "participant_tokens_lifetime" CHECK ("expires_at" > "created_at"),
    CONSTRAINT "participant_tokens_participant_id_fkey" FOREIGN KEY ("participant_id") REFERENCES "participants"("id") ON DELETE RESTRICT ON UPDATE RESTRICT
);
CREATE INDEX "participant_tokens_participant_id_idx" ON "participant_tokens"("participant_id");

CREATE TABLE "participant_sessions" (
    "id" TEXT COLLATE "C" NOT NULL,
    "environment_id" TEXT COLLATE "C" NOT NULL,
    "room_id" TEXT COLLATE "C" NOT NULL,
    "participant_id" TEXT COLLATE "C" NOT NULL,
    "started_at" TIMESTAMPTZ(3) NOT NULL,
    "ended_at" TIMESTAMPTZ(3),
    "end_reason" TEXT,
    CONSTRAINT "participant_sessions_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "participant_sessions_end_reason" CHECK ("end_reason" IN ('left', 'removed', 'room_ended', 'connection_lost', 'superseded')),
    CONSTRAINT "participant_sessions_ended" CHECK (("ended_at" IS NULL) = ("end_reason" IS NULL)),
    CONSTRAINT "participant_sessions_room_id_fkey" FOREIGN KEY ("room_id") REFERENCES "rooms"("id") ON DELETE RESTRICT ON UPDATE RESTRICT,
    CONSTRAINT "participant_sessions_participant_id_fkey" FOREIGN KEY ("participant_id") REFERENCES "participants"("id") ON DELETE RESTRICT ON UPDATE RESTRICT
);
CREATE INDEX "participant_sessions_participant_id_idx" ON "participant_sessions"("participant_id");
-- One live session per participant.
CREATE UNIQUE INDEX "participant_sessions_live_key" ON "participant_sessions"("participant_id") WHERE "ended_at" IS NULL;
CREATE INDEX "participant_sessions_live_in_room_idx" ON "participant_sessions"("room_id") WHERE "ended_at" IS NULL;

CREATE TABLE "runtime_operations" (
    "id" TEXT COLLATE "C" NOT NULL,
    "environment_id" TEXT COLLATE "C" NOT NULL,
    "room_id" TEXT COLLATE "C" NOT NULL,
    "participant_id" TEXT COLLATE "C",
    "kind" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "run" INTEGER NOT NULL DEFAULT 1,
    "attempts" INTEGER NOT NULL DEFAULT 0,
    "run_attempts" INTEGER NOT NULL DEFAULT 0,
    "due_at" TIMESTAMPTZ(3) NOT NULL DEFAULT transaction_timestamp(),
    "woken_at" TIMESTAMPTZ(3) NOT NULL DEFAULT transaction_timestamp(),
    "wake_ups" INTEGER NOT NULL DEFAULT 1,
    "lease_token" UUID,
    "lease_expires_at" TIMESTAMPTZ(3),
    "last_error" JSONB,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "completed_at" TIMESTAMPTZ(3),
    CONSTRAINT "runtime_operations_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "runtime_operations_kind" CHECK ("kind" IN ('room.end', 'participant.remove')),
    CONSTRAINT "runtime_operations_subject" CHECK (("kind" = 'participant.remove') = ("participant_id" IS NOT NULL)),
    CONSTRAINT "runtime_operations_status" CHECK ("status" IN ('pending', 'completed', 'failed')),
    CONSTRAINT "runtime_operations_attempts" CHECK ("run" >= 1 AND "run_attempts" BETWEEN 0 AND 8 AND "attempts" >= "run_attempts"),
    CONSTRAINT "runtime_operations_lease" CHECK (("lease_token" IS NULL) = ("lease_expires_at" IS NULL)),
    CONSTRAINT "runtime_operations_lease_pending" CHECK ("lease_token" IS NULL OR "status" = 'pending'),
    CONSTRAINT "runtime_operations_completed_at" CHECK (("status" = 'completed') = ("completed_at" IS NOT NULL)),
    CONSTRAINT "runtime_operations_room_id_fkey" FOREIGN KEY ("room_id") REFERENCES "rooms"("id") ON DELETE RESTRICT ON UPDATE RESTRICT,
    CONSTRAINT "runtime_operations_participant_id_fkey" FOREIGN KEY ("participant_id") REFERENCES "participants"("id") ON DELETE RESTRICT ON UPDATE RESTRICT
);
-- At most one operation for each room and each participant, ever: a repeated request finds it.
CREATE UNIQUE INDEX "runtime_operations_room_end_key" ON "runtime_operations"("room_id") WHERE "kind" = 'room.end';
CREATE UNIQUE INDEX "runtime_operations_participant_remove_key" ON "runtime_operations"("participant_id") WHERE "kind" = 'participant.remove';
-- The sweep: pending rows that are due. Stays as small as the backlog.
CREATE INDEX "runtime_operations_due_idx" ON "runtime_operations"("due_at") WHERE "status" = 'pending';

CREATE TABLE "signing_keys" (
    "id" TEXT COLLATE "C" NOT NULL,
    "status" TEXT NOT NULL,
    "public_jwk" JSONB NOT NULL,
    "private_key_sealed" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "activates_at" TIMESTAMPTZ(3) NOT NULL,
    "retired_at" TIMESTAMPTZ(3),
    "verifies_until" TIMESTAMPTZ(3),
    CONSTRAINT "signing_keys_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "signing_keys_status" CHECK ("status" IN ('next', 'active', 'retired')),
    CONSTRAINT "signing_keys_private_key" CHECK (("status" = 'retired') = ("private_key_sealed" IS NULL)),
    CONSTRAINT "signing_keys_retired" CHECK (("status" = 'retired') = ("retired_at" IS NOT NULL) AND ("status" = 'retired') = ("verifies_until" IS NOT NULL))
);
-- One key signs, and at most one waits to: several instances that start or rotate at once agree.
CREATE UNIQUE INDEX "signing_keys_active_key" ON "signing_keys"("status") WHERE "status" = 'active';
CREATE UNIQUE INDEX "signing_keys_next_key" ON "signing_keys"("status") WHERE "status" = 'next';

CREATE TABLE "idempotency_records" (
    "environment_id" TEXT COLLATE "C" NOT NULL,
    "route" TEXT COLLATE "C" NOT NULL,
    "key" TEXT COLLATE "C" NOT NULL,
    "request_hash" BYTEA NOT NULL,
    "response_status" INTEGER NOT NULL,
    "response_body" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    CONSTRAINT "idempotency_records_pkey" PRIMARY KEY ("environment_id", "route", "key"),
    CONSTRAINT "idempotency_records_key_length" CHECK (char_length("key") BETWEEN 1 AND 255),
    CONSTRAINT "idempotency_records_hash_length" CHECK (octet_length("request_hash") = 32)
);
CREATE INDEX "idempotency_records_expires_at_idx" ON "idempotency_records"("expires_at");
