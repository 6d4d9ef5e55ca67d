-- Why: ended rooms are deleted with all that belongs to them, the personal data of a participant can be erased from its
-- row and from stored events, and an idempotency record keeps what the request made instead of the whole answer.
-- Locks: participants, participant_sessions, runtime_operations and rooms take no writes while their indexes are built,
-- which reads each table once; events for that of its index likewise. The new columns are null: no table is rewritten.

-- The retention sweep: ended rooms, the oldest first.
CREATE INDEX "rooms_ended_idx" ON "rooms"("ended_at") WHERE "status" = 'ended';
-- The foreign keys that a deletion is checked against, and what belongs to a room.
CREATE INDEX "participants_room_id_idx" ON "participants"("room_id");
CREATE INDEX "participant_sessions_room_id_idx" ON "participant_sessions"("room_id");
CREATE INDEX "participant_sessions_token_id_idx" ON "participant_sessions"("token_id");
CREATE INDEX "runtime_operations_room_id_idx" ON "runtime_operations"("room_id");
CREATE INDEX "runtime_operations_participant_id_idx" ON "runtime_operations"("participant_id");

-- Whose data an event holds, and when that data was erased from it.
ALTER TABLE "events"
    ADD COLUMN "participant_id" TEXT COLLATE "C",
    ADD COLUMN "erased_at" TIMESTAMPTZ(3);
CREATE INDEX "events_participant_id_idx" ON "events"("participant_id") WHERE "participant_id" IS NOT NULL;

-- Participants whose data is being erased: events that still have deliveries under way follow when these are finished.
-- No foreign keys: the participant itself may have been deleted by then.
CREATE TABLE "participant_erasures" (
    "participant_id" TEXT COLLATE "C" NOT NULL,
    "environment_id" TEXT COLLATE "C" NOT NULL,
    "requested_at" TIMESTAMPTZ(3) NOT NULL DEFAULT transaction_timestamp(),
    CONSTRAINT "participant_erasures_pkey" PRIMARY KEY ("participant_id")
);

-- What the request made, beside what its body says: the answer is built from both. `response_body` is read for records
-- of the release before, and goes one release later.
ALTER TABLE "idempotency_records"
    ADD COLUMN "made" TEXT,
    ALTER COLUMN "response_body" DROP NOT NULL;
