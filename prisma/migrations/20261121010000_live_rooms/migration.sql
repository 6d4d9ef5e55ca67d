-- Why: live rooms: who holds a session's connection and how it is resumed, the tracks that are published, the media
-- server that carries a room, since when it is empty, and the processes that all this depends on.
-- Locks: rooms and participant_sessions for the moment of adding columns (constant defaults, no rewrite); writes to
-- participant_sessions wait while the constraints are checked and the indexes are built, which reads the table once.
-- Nothing but clean-up has written sessions before, so it is small. Live sessions from before are held by nobody: the
-- cleanup worker ends them.

ALTER TABLE "rooms"
    ADD COLUMN "media_node_id" TEXT COLLATE "C",
    ADD COLUMN "media_generation" INTEGER NOT NULL DEFAULT 0,
    ADD COLUMN "empty_since" TIMESTAMPTZ(3);
-- The rooms that a media server carries: placement, draining, and the search for orphans.
CREATE INDEX "rooms_on_media_node_idx" ON "rooms"("media_node_id") WHERE "media_node_id" IS NOT NULL AND "status" <> 'ended';
-- Rooms that may close by themselves.
CREATE INDEX "rooms_empty_idx" ON "rooms"("empty_since") WHERE "status" = 'active' AND "empty_since" IS NOT NULL;

ALTER TABLE "participant_sessions"
    ADD COLUMN "token_id" TEXT COLLATE "C",
    ADD COLUMN "permissions" TEXT[] NOT NULL DEFAULT '{}',
    ADD COLUMN "resume_secret_hash" BYTEA,
    ADD COLUMN "instance_id" TEXT COLLATE "C",
    ADD COLUMN "connection" INTEGER NOT NULL DEFAULT 1,
    ADD COLUMN "disconnected_at" TIMESTAMPTZ(3),
    ADD CONSTRAINT "participant_sessions_resume_secret_hash_length" CHECK (octet_length("resume_secret_hash") = 32),
    ADD CONSTRAINT "participant_sessions_connection" CHECK ("connection" >= 1),
    ADD CONSTRAINT "participant_sessions_token_id_fkey" FOREIGN KEY ("token_id") REFERENCES "participant_tokens"("id") ON DELETE RESTRICT ON UPDATE RESTRICT;
-- What an instance holds: when it starts anew, stops or dies.
CREATE INDEX "participant_sessions_live_on_instance_idx" ON "participant_sessions"("instance_id") WHERE "ended_at" IS NULL;
-- The sweep of sessions whose grace is over: as small as the number of those that wait to be resumed.
CREATE INDEX "participant_sessions_disconnected_idx" ON "participant_sessions"("disconnected_at") WHERE "ended_at" IS NULL AND "disconnected_at" IS NOT NULL;

CREATE TABLE "session_tracks" (
    "session_id" TEXT COLLATE "C" NOT NULL,
    "track_id" TEXT COLLATE "C" NOT NULL,
    "kind" TEXT NOT NULL,
    "source" TEXT NOT NULL,
    "feed_id" TEXT COLLATE "C" NOT NULL,
    "mid" TEXT NOT NULL,
    "muted" BOOLEAN NOT NULL,
    "published_at" TIMESTAMPTZ(3) NOT NULL,
    CONSTRAINT "session_tracks_pkey" PRIMARY KEY ("session_id", "track_id"),
    CONSTRAINT "session_tracks_source" CHECK (
        ("kind" = 'audio' AND "source" IN ('microphone', 'screen_audio')) OR ("kind" = 'video' AND "source" IN ('camera', 'screen'))
    ),
    CONSTRAINT "session_tracks_track_id_length" CHECK (char_length("track_id") BETWEEN 1 AND 64),
    CONSTRAINT "session_tracks_session_id_fkey" FOREIGN KEY ("session_id") REFERENCES "participant_sessions"("id") ON DELETE RESTRICT ON UPDATE RESTRICT
);

CREATE TABLE "signaling_instances" (
    "id" TEXT COLLATE "C" NOT NULL,
    "started_at" TIMESTAMPTZ(3) NOT NULL DEFAULT transaction_timestamp(),
    "heartbeat_at" TIMESTAMPTZ(3) NOT NULL DEFAULT transaction_timestamp(),
    CONSTRAINT "signaling_instances_pkey" PRIMARY KEY ("id")
);

CREATE TABLE "media_nodes" (
    "id" TEXT COLLATE "C" NOT NULL,
    "draining" BOOLEAN NOT NULL DEFAULT false,
    "state" TEXT NOT NULL DEFAULT 'down',
    "checked_at" TIMESTAMPTZ(3),
    CONSTRAINT "media_nodes_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "media_nodes_state" CHECK ("state" IN ('up', 'down'))
);
