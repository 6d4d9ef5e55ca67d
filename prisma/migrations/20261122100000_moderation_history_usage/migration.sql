-- Why: the server moderates participants, sessions are history with their tracks and quality, and usage is read by day.
-- Locks: participants and participant_sessions for the moment of adding columns (constant defaults, no rewrite); writes
-- to participant_sessions wait while three indexes are built, each of which reads the table once. Two of them replace
-- indexes that begin with the same column. The version before neither reads nor writes the columns and tables.

-- Empty: the permissions of the token apply.
ALTER TABLE "participants" ADD COLUMN "permissions" TEXT[] NOT NULL DEFAULT '{}';

ALTER TABLE "participant_sessions"
    ADD COLUMN "past_tracks" JSONB NOT NULL DEFAULT '[]',
    ADD COLUMN "good_seconds" INTEGER NOT NULL DEFAULT 0,
    ADD COLUMN "fair_seconds" INTEGER NOT NULL DEFAULT 0,
    ADD COLUMN "poor_seconds" INTEGER NOT NULL DEFAULT 0,
    ADD COLUMN "lost_seconds" INTEGER NOT NULL DEFAULT 0,
    ADD COLUMN "relayed_seconds" INTEGER NOT NULL DEFAULT 0;

-- The history of a participant and of a room, newest first.
CREATE INDEX "participant_sessions_participant_id_id_idx" ON "participant_sessions"("participant_id", "id" DESC);
DROP INDEX "participant_sessions_participant_id_idx";
CREATE INDEX "participant_sessions_room_id_id_idx" ON "participant_sessions"("room_id", "id" DESC);
DROP INDEX "participant_sessions_room_id_idx";
-- The sessions of an environment that ended after a time, and those that have not ended.
CREATE INDEX "participant_sessions_environment_id_ended_at_idx" ON "participant_sessions"("environment_id", "ended_at");

CREATE TABLE "usage_days" (
    "environment_id" TEXT COLLATE "C" NOT NULL,
    "day" DATE NOT NULL,
    "rooms" INTEGER NOT NULL,
    "participant_ms" BIGINT NOT NULL,
    "peak_participants" INTEGER NOT NULL,
    "measured_sessions" INTEGER NOT NULL,
    "relayed_sessions" INTEGER NOT NULL,
    "deliveries" INTEGER NOT NULL,
    CONSTRAINT "usage_days_pkey" PRIMARY KEY ("environment_id", "day")
);

CREATE TABLE "usage_rollups" (
    "day" DATE NOT NULL,
    "rolled_up_at" TIMESTAMPTZ(3) NOT NULL DEFAULT transaction_timestamp(),
    CONSTRAINT "usage_rollups_pkey" PRIMARY KEY ("day")
);
