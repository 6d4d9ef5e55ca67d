-- Why: signaling instances read the changes of a room since a version instead of the whole room, large rooms have a
-- paged roster, and a session's media survives the signaling instance that holds it.
-- Locks: rooms and participant_sessions for the moment of adding columns (constant defaults, no rewrite); writes to
-- participant_sessions wait while the index is built, which reads the table once. The version before neither reads nor
-- writes these columns.

ALTER TABLE "rooms"
    ADD COLUMN "version" INTEGER NOT NULL DEFAULT 0,
    ADD COLUMN "roster_paged" BOOLEAN NOT NULL DEFAULT false;

ALTER TABLE "participant_sessions"
    ADD COLUMN "version" INTEGER NOT NULL DEFAULT 0,
    ADD COLUMN "media" JSONB;
-- The sessions of a room that have changed since a version.
CREATE INDEX "participant_sessions_room_version_idx" ON "participant_sessions"("room_id", "version") WHERE "version" > 0;
