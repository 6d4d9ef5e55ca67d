-- Why: a participant's joins are numbered as they are admitted, so that an earlier one cannot supersede a later one; and
-- joins and resumptions have a pace.
-- Locks: participants and participant_sessions for the moment of adding columns (constant defaults, no rewrite). The
-- version before neither reads nor writes these columns.

ALTER TABLE "participants"
    ADD COLUMN "join_count" INTEGER NOT NULL DEFAULT 0,
    ADD COLUMN "joins_full_at" TIMESTAMPTZ(3);

ALTER TABLE "participant_sessions" ADD COLUMN "resumptions_full_at" TIMESTAMPTZ(3);
