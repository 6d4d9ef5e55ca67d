-- The schema of the first release, table by table in the order of prisma/schema.prisma. The comments explain the parts
-- that the language of that file cannot express. docs/data-model.md explains tables and indexes.
--
-- Ids have COLLATE "C": TypeIDs that are compared byte by byte sort by their time, whatever the collation of the database.
-- Some conditions and keys contain a term without effect, such as `status || ''`. PostgreSQL then uses the index only for
-- statements that contain the same term, and these statements use no other index.

-- The offset between the transaction ids of this cluster and of stored events. After a logical dump was restored
-- into a younger cluster, `rtc db migrate` replaces the function: without an offset, new events would sort before the
-- stored ones. A function costs nothing to read, and a dump contains it.
CREATE FUNCTION callplane_transaction_offset() RETURNS BIGINT LANGUAGE sql STABLE PARALLEL SAFE RETURN 0::BIGINT;

CREATE TABLE projects (
    id TEXT COLLATE "C" PRIMARY KEY,
    name TEXT NOT NULL,
    created_at TIMESTAMPTZ(3) NOT NULL,
    CONSTRAINT projects_name_length CHECK (char_length(name) BETWEEN 1 AND 120)
);

CREATE TABLE environments (
    id TEXT COLLATE "C" PRIMARY KEY,
    project_id TEXT COLLATE "C" NOT NULL REFERENCES projects ON DELETE RESTRICT ON UPDATE RESTRICT,
    name TEXT NOT NULL,
    created_at TIMESTAMPTZ(3) NOT NULL,
    CONSTRAINT environments_name_length CHECK (char_length(name) BETWEEN 1 AND 120)
);
CREATE UNIQUE INDEX environments_project_id_name_key ON environments (project_id, name);

CREATE TABLE api_keys (
    id TEXT COLLATE "C" PRIMARY KEY,
    environment_id TEXT COLLATE "C" NOT NULL REFERENCES environments ON DELETE RESTRICT ON UPDATE RESTRICT,
    type TEXT NOT NULL,
    name TEXT,
    key_hash BYTEA NOT NULL,
    key_hint TEXT NOT NULL,
    scopes TEXT[] NOT NULL,
    created_at TIMESTAMPTZ(3) NOT NULL,
    expires_at TIMESTAMPTZ(3),
    revoked_at TIMESTAMPTZ(3),
    CONSTRAINT api_keys_type CHECK (type IN ('secret', 'publishable')),
    CONSTRAINT api_keys_hash_length CHECK (octet_length(key_hash) = 32)
);
CREATE UNIQUE INDEX api_keys_key_hash_key ON api_keys (key_hash);
CREATE INDEX api_keys_environment_id_id_idx ON api_keys (environment_id, id);

-- Exactly one hash is set: of the code before the sign-in, of the cookie after it.
CREATE TABLE console_sessions (
    id TEXT COLLATE "C" PRIMARY KEY,
    environment_id TEXT COLLATE "C" NOT NULL REFERENCES environments ON DELETE RESTRICT ON UPDATE RESTRICT,
    api_key_id TEXT COLLATE "C",
    code_hash BYTEA,
    secret_hash BYTEA,
    scopes TEXT[] NOT NULL,
    read_only BOOLEAN NOT NULL,
    lifetime_seconds INTEGER NOT NULL,
    created_at TIMESTAMPTZ(3) NOT NULL DEFAULT transaction_timestamp(),
    expires_at TIMESTAMPTZ(3) NOT NULL,
    used_at TIMESTAMPTZ(3) NOT NULL DEFAULT transaction_timestamp(),
    CONSTRAINT console_sessions_hashes CHECK (
        (code_hash IS NULL) <> (secret_hash IS NULL) AND length(coalesce(code_hash, secret_hash)) = 32
    ),
    CONSTRAINT console_sessions_lifetime CHECK (lifetime_seconds BETWEEN 1 AND 86400),
    CONSTRAINT console_sessions_expiry CHECK (expires_at > created_at)
);
CREATE UNIQUE INDEX console_sessions_code_hash_key ON console_sessions (code_hash);
CREATE UNIQUE INDEX console_sessions_secret_hash_key ON console_sessions (secret_hash);
CREATE INDEX console_sessions_environment_id_id_idx ON console_sessions (environment_id, id);
CREATE INDEX console_sessions_expires_at_idx ON console_sessions (expires_at);

-- Each event of a room updates its sequence and version, which no index has: on a page with room, no index changes.
CREATE TABLE rooms (
    id TEXT COLLATE "C" PRIMARY KEY,
    environment_id TEXT COLLATE "C" NOT NULL REFERENCES environments ON DELETE RESTRICT ON UPDATE RESTRICT,
    name TEXT NOT NULL,
    metadata JSONB NOT NULL,
    status TEXT NOT NULL,
    max_participants INTEGER NOT NULL,
    empty_timeout_seconds INTEGER,
    record JSONB,
    encryption TEXT NOT NULL DEFAULT 'none',
    waiting_room BOOLEAN NOT NULL DEFAULT false,
    created_at TIMESTAMPTZ(3) NOT NULL,
    started_at TIMESTAMPTZ(3),
    ended_at TIMESTAMPTZ(3),
    last_sequence INTEGER NOT NULL DEFAULT 0,
    media_node_id TEXT COLLATE "C",
    media_generation INTEGER NOT NULL DEFAULT 0,
    empty_since TIMESTAMPTZ(3),
    version INTEGER NOT NULL DEFAULT 0,
    roster_paged BOOLEAN NOT NULL DEFAULT false,
    recording_since TIMESTAMPTZ(3),
    CONSTRAINT rooms_name_length CHECK (char_length(name) BETWEEN 1 AND 120),
    CONSTRAINT rooms_metadata_object CHECK (jsonb_typeof(metadata) = 'object'),
    CONSTRAINT rooms_status CHECK (status IN ('created', 'active', 'ending', 'ended')),
    CONSTRAINT rooms_max_participants CHECK (max_participants BETWEEN 1 AND 100000),
    CONSTRAINT rooms_empty_timeout_seconds CHECK (empty_timeout_seconds BETWEEN 60 AND 604800),
    CONSTRAINT rooms_encryption CHECK (encryption IN ('none', 'required')),
    CONSTRAINT rooms_encrypted_record CHECK (encryption = 'none' OR record IS NULL),
    CONSTRAINT rooms_ended_at CHECK ((status = 'ended') = (ended_at IS NOT NULL)),
    CONSTRAINT rooms_started_at CHECK (status <> 'active' OR started_at IS NOT NULL)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
CREATE INDEX rooms_environment_id_id_idx ON rooms (environment_id, id DESC);
CREATE INDEX rooms_environment_id_status_id_idx ON rooms (environment_id, status, id DESC);
-- A prefix is a range of names in the order of their bytes.
CREATE INDEX rooms_status_name_idx ON rooms (environment_id, status, name COLLATE "C", id);
CREATE INDEX rooms_on_media_node_idx ON rooms (media_node_id) WHERE media_node_id IS NOT NULL AND status <> 'ended';
CREATE INDEX rooms_empty_idx ON rooms (empty_since)
    WHERE status IN ('created', 'active') AND empty_since IS NOT NULL AND empty_timeout_seconds IS NULL;
-- When a room with a time-out of its own ends. Without a time zone, because only that is immutable.
CREATE INDEX rooms_empty_until_idx ON rooms ((empty_since AT TIME ZONE 'UTC' + empty_timeout_seconds * interval '1 second'))
    WHERE status IN ('created', 'active') AND empty_since IS NOT NULL AND empty_timeout_seconds IS NOT NULL;
CREATE INDEX rooms_ended_idx ON rooms (ended_at) WHERE status = 'ended';

CREATE TABLE participants (
    id TEXT COLLATE "C" PRIMARY KEY,
    environment_id TEXT COLLATE "C" NOT NULL,
    room_id TEXT COLLATE "C" NOT NULL REFERENCES rooms ON DELETE RESTRICT ON UPDATE RESTRICT,
    external_id TEXT,
    name TEXT NOT NULL,
    metadata JSONB NOT NULL,
    role TEXT NOT NULL,
    created_at TIMESTAMPTZ(3) NOT NULL,
    token_expires_at TIMESTAMPTZ(3) NOT NULL,
    connected_at TIMESTAMPTZ(3),
    left_at TIMESTAMPTZ(3),
    removed_at TIMESTAMPTZ(3),
    join_count INTEGER NOT NULL DEFAULT 0,
    joins_full_at TIMESTAMPTZ(3),
    permissions TEXT[] NOT NULL DEFAULT '{}',
    moved_from_id TEXT COLLATE "C",
    waiting BOOLEAN NOT NULL DEFAULT false,
    CONSTRAINT participants_name_length CHECK (char_length(name) BETWEEN 1 AND 120),
    CONSTRAINT participants_external_id_length CHECK (char_length(external_id) BETWEEN 1 AND 255),
    CONSTRAINT participants_metadata_object CHECK (jsonb_typeof(metadata) = 'object'),
    CONSTRAINT participants_role_length CHECK (char_length(role) BETWEEN 1 AND 32)
);
CREATE UNIQUE INDEX participants_moved_from_id_key ON participants (moved_from_id);
CREATE INDEX participants_room_id_id_idx ON participants (room_id, id DESC);
CREATE INDEX participants_list_idx ON participants (room_id, connected_at DESC, id DESC) WHERE connected_at IS NOT NULL;
CREATE INDEX participants_present_idx ON participants (room_id, connected_at DESC, id DESC)
    WHERE connected_at IS NOT NULL AND left_at IS NULL;
CREATE INDEX participants_external_id_idx ON participants (room_id, external_id, connected_at DESC, id DESC)
    WHERE external_id IS NOT NULL AND connected_at IS NOT NULL;
CREATE INDEX participants_not_left_idx ON participants (room_id) WHERE left_at IS NULL;

CREATE TABLE participant_tokens (
    id TEXT COLLATE "C" PRIMARY KEY,
    participant_id TEXT COLLATE "C" NOT NULL REFERENCES participants ON DELETE RESTRICT ON UPDATE RESTRICT,
    permissions TEXT[] NOT NULL,
    created_at TIMESTAMPTZ(3) NOT NULL,
    expires_at TIMESTAMPTZ(3) NOT NULL,
    revoked_at TIMESTAMPTZ(3),
    CONSTRAINT participant_tokens_lifetime CHECK (expires_at > created_at)
);
CREATE INDEX participant_tokens_participant_id_idx ON participant_tokens (participant_id);

-- A session is updated several times while it lives, and workers read the live ones every few seconds.
CREATE TABLE participant_sessions (
    id TEXT COLLATE "C" PRIMARY KEY,
    environment_id TEXT COLLATE "C" NOT NULL,
    room_id TEXT COLLATE "C" NOT NULL REFERENCES rooms ON DELETE RESTRICT ON UPDATE RESTRICT,
    participant_id TEXT COLLATE "C" NOT NULL REFERENCES participants ON DELETE RESTRICT ON UPDATE RESTRICT,
    started_at TIMESTAMPTZ(3) NOT NULL,
    ended_at TIMESTAMPTZ(3),
    end_reason TEXT,
    token_id TEXT COLLATE "C" REFERENCES participant_tokens ON DELETE RESTRICT ON UPDATE RESTRICT,
    permissions TEXT[] NOT NULL DEFAULT '{}',
    resume_secret_hash BYTEA,
    instance_id TEXT COLLATE "C",
    connection INTEGER NOT NULL DEFAULT 1,
    disconnected_at TIMESTAMPTZ(3),
    resumptions_full_at TIMESTAMPTZ(3),
    version INTEGER NOT NULL DEFAULT 0,
    waiting BOOLEAN NOT NULL DEFAULT false,
    media JSONB,
    past_tracks JSONB NOT NULL DEFAULT '[]',
    good_seconds INTEGER NOT NULL DEFAULT 0,
    fair_seconds INTEGER NOT NULL DEFAULT 0,
    poor_seconds INTEGER NOT NULL DEFAULT 0,
    lost_seconds INTEGER NOT NULL DEFAULT 0,
    relayed_seconds INTEGER NOT NULL DEFAULT 0,
    CONSTRAINT participant_sessions_end_reason CHECK (
        end_reason IN ('left', 'removed', 'room_ended', 'connection_lost', 'superseded', 'moved')
    ),
    CONSTRAINT participant_sessions_ended CHECK ((ended_at IS NULL) = (end_reason IS NULL)),
    CONSTRAINT participant_sessions_resume_secret_hash_length CHECK (octet_length(resume_secret_hash) = 32),
    CONSTRAINT participant_sessions_connection CHECK (connection >= 1)
) WITH (
    fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02,
    autovacuum_vacuum_cost_limit = 1000
);
CREATE INDEX participant_sessions_participant_id_id_idx ON participant_sessions (participant_id, id DESC);
CREATE INDEX participant_sessions_room_id_id_idx ON participant_sessions (room_id, id DESC);
CREATE INDEX participant_sessions_environment_id_ended_at_idx ON participant_sessions (environment_id, ended_at);
CREATE INDEX participant_sessions_token_id_idx ON participant_sessions (token_id);
-- A participant has at most one live session.
CREATE UNIQUE INDEX participant_sessions_live_key ON participant_sessions (participant_id) WHERE ended_at IS NULL;
CREATE INDEX participant_sessions_live_in_room_idx ON participant_sessions (room_id) WHERE ended_at IS NULL;
CREATE INDEX participant_sessions_live_on_instance_idx ON participant_sessions (instance_id) WHERE ended_at IS NULL;
CREATE INDEX participant_sessions_disconnected_idx ON participant_sessions (disconnected_at)
    WHERE ended_at IS NULL AND disconnected_at IS NOT NULL;
CREATE INDEX participant_sessions_room_version_idx ON participant_sessions (room_id, version) WHERE version > 0;

CREATE TABLE session_tracks (
    session_id TEXT COLLATE "C" NOT NULL REFERENCES participant_sessions ON DELETE RESTRICT ON UPDATE RESTRICT,
    track_id TEXT COLLATE "C" NOT NULL,
    kind TEXT NOT NULL,
    source TEXT NOT NULL,
    feed_id TEXT COLLATE "C" NOT NULL,
    mid TEXT NOT NULL,
    muted BOOLEAN NOT NULL,
    published_at TIMESTAMPTZ(3) NOT NULL,
    PRIMARY KEY (session_id, track_id),
    CONSTRAINT session_tracks_source CHECK (
        (kind = 'audio' AND source IN ('microphone', 'screen_audio')) OR (kind = 'video' AND source IN ('camera', 'screen'))
    ),
    CONSTRAINT session_tracks_track_id_length CHECK (char_length(track_id) BETWEEN 1 AND 64)
);

-- A few rows that every gateway updates every two seconds.
CREATE TABLE signaling_instances (
    id TEXT COLLATE "C" PRIMARY KEY,
    started_at TIMESTAMPTZ(3) NOT NULL DEFAULT transaction_timestamp(),
    heartbeat_at TIMESTAMPTZ(3) NOT NULL DEFAULT transaction_timestamp()
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- Only a registered server has an address, and only a server with an address a capacity and an agent.
CREATE TABLE media_nodes (
    id TEXT COLLATE "C" PRIMARY KEY,
    draining BOOLEAN NOT NULL DEFAULT false,
    state TEXT NOT NULL DEFAULT 'down',
    version TEXT,
    checked_at TIMESTAMPTZ(3),
    url TEXT,
    capacity INTEGER,
    registered_at TIMESTAMPTZ(3),
    heartbeat_at TIMESTAMPTZ(3),
    captured_at TIMESTAMPTZ(3),
    capture_fails TEXT[] NOT NULL DEFAULT '{}',
    CONSTRAINT media_nodes_state CHECK (state IN ('up', 'down')),
    CONSTRAINT media_nodes_url CHECK (url ~ '^wss?://' AND length(url) <= 2048),
    CONSTRAINT media_nodes_capacity CHECK (capacity BETWEEN 1 AND 1000000),
    CONSTRAINT media_nodes_registered CHECK (
        (url IS NULL) = (registered_at IS NULL) AND (url IS NOT NULL OR (capacity IS NULL AND heartbeat_at IS NULL))
    )
);

CREATE TABLE turn_servers (
    address TEXT COLLATE "C" PRIMARY KEY,
    state TEXT NOT NULL,
    checked_at TIMESTAMPTZ(3) NOT NULL,
    CONSTRAINT turn_servers_state CHECK (state IN ('up', 'down', 'unreachable'))
);

-- A lease exists only on a pending row. Wake-ups and claims change no indexed column: on a page with room, no index
-- changes.
CREATE TABLE runtime_operations (
    id TEXT COLLATE "C" PRIMARY KEY,
    environment_id TEXT COLLATE "C" NOT NULL,
    room_id TEXT COLLATE "C" NOT NULL REFERENCES rooms ON DELETE RESTRICT ON UPDATE RESTRICT,
    participant_id TEXT COLLATE "C" REFERENCES participants ON DELETE RESTRICT ON UPDATE RESTRICT,
    kind TEXT NOT NULL,
    subject_id TEXT COLLATE "C" NOT NULL,
    status TEXT NOT NULL,
    run INTEGER NOT NULL DEFAULT 1,
    attempts INTEGER NOT NULL DEFAULT 0,
    run_attempts INTEGER NOT NULL DEFAULT 0,
    due_at TIMESTAMPTZ(3) NOT NULL DEFAULT transaction_timestamp(),
    lease_token UUID,
    lease_expires_at TIMESTAMPTZ(3),
    claimed_at TIMESTAMPTZ(3),
    input JSONB,
    traceparent TEXT,
    last_error JSONB,
    created_at TIMESTAMPTZ(3) NOT NULL,
    completed_at TIMESTAMPTZ(3),
    CONSTRAINT runtime_operations_status CHECK (status IN ('pending', 'completed', 'failed')),
    CONSTRAINT runtime_operations_attempts CHECK (run >= 1 AND run_attempts BETWEEN 0 AND 8 AND attempts >= run_attempts),
    CONSTRAINT runtime_operations_lease CHECK ((lease_token IS NULL) = (lease_expires_at IS NULL)),
    CONSTRAINT runtime_operations_lease_pending CHECK (lease_token IS NULL OR status = 'pending'),
    CONSTRAINT runtime_operations_completed_at CHECK ((status = 'completed') = (completed_at IS NOT NULL))
) WITH (
    fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500,
    autovacuum_analyze_scale_factor = 0.05
);
CREATE INDEX runtime_operations_room_id_idx ON runtime_operations (room_id);
CREATE INDEX runtime_operations_participant_id_idx ON runtime_operations (participant_id);
-- At most one operation of a kind for each subject, ever: a repeated request finds it.
CREATE UNIQUE INDEX runtime_operations_subject_id_kind_key ON runtime_operations (subject_id, kind);
-- The latest turn of each environment.
CREATE INDEX runtime_operations_turns_idx ON runtime_operations (kind, environment_id, claimed_at) WHERE claimed_at IS NOT NULL;
CREATE INDEX runtime_operations_due_idx ON runtime_operations (due_at) WHERE status = 'pending';
CREATE INDEX runtime_operations_environment_due_idx ON runtime_operations (environment_id, due_at) WHERE status = 'pending';

-- A recording of a room. Only a finished one has its end; `files` and `gaps` are written by the worker that holds the
-- lease of its operation.
CREATE TABLE recordings (
    id TEXT COLLATE "C" PRIMARY KEY,
    environment_id TEXT COLLATE "C" NOT NULL,
    room_id TEXT COLLATE "C" NOT NULL REFERENCES rooms ON DELETE RESTRICT ON UPDATE RESTRICT,
    participant_id TEXT COLLATE "C" REFERENCES participants ON DELETE RESTRICT ON UPDATE RESTRICT,
    mode TEXT NOT NULL,
    audio_only BOOLEAN NOT NULL,
    layout TEXT,
    metadata JSONB NOT NULL,
    max_duration_seconds INTEGER NOT NULL,
    status TEXT NOT NULL,
    progress INTEGER NOT NULL DEFAULT 0,
    files JSONB NOT NULL DEFAULT '[]',
    gaps JSONB NOT NULL DEFAULT '[]',
    last_error JSONB,
    started_at TIMESTAMPTZ(3) NOT NULL,
    ended_at TIMESTAMPTZ(3),
    completed_at TIMESTAMPTZ(3),
    deleted_at TIMESTAMPTZ(3),
    CONSTRAINT recordings_mode CHECK (mode IN ('composite', 'tracks')),
    CONSTRAINT recordings_layout CHECK (layout IN ('grid', 'speaker')),
    CONSTRAINT recordings_status CHECK (status IN ('recording', 'processing', 'completed', 'failed')),
    CONSTRAINT recordings_progress CHECK (progress BETWEEN 0 AND 100),
    CONSTRAINT recordings_max_duration_seconds CHECK (max_duration_seconds BETWEEN 1 AND 86400),
    CONSTRAINT recordings_ended_at CHECK ((status = 'recording') = (ended_at IS NULL)),
    CONSTRAINT recordings_completed_at CHECK ((status = 'completed') = (completed_at IS NOT NULL)),
    CONSTRAINT recordings_deleted_at CHECK (deleted_at IS NULL OR status <> 'recording')
);
CREATE INDEX recordings_environment_id_id_idx ON recordings (environment_id, id DESC);
CREATE INDEX recordings_room_id_id_idx ON recordings (room_id, id DESC);
CREATE INDEX recordings_participant_id_idx ON recordings (participant_id);
-- The recordings that are wanted now: by media servers, by the trigger below, and by the sweep of the longest durations.
CREATE INDEX recordings_running_idx ON recordings (room_id) WHERE status = 'recording';
-- The retention.
CREATE INDEX recordings_ended_idx ON recordings (ended_at) WHERE status IN ('completed', 'failed') AND deleted_at IS NULL;

-- A file that a media server has written, as far as the store has it.
CREATE TABLE recording_captures (
    room_id TEXT COLLATE "C" NOT NULL REFERENCES rooms ON DELETE CASCADE ON UPDATE RESTRICT,
    node_id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    kind TEXT NOT NULL,
    feed_id TEXT COLLATE "C" NOT NULL,
    section INTEGER NOT NULL,
    started_at TIMESTAMPTZ(3) NOT NULL,
    shipped_at TIMESTAMPTZ(3) NOT NULL,
    bytes BIGINT NOT NULL,
    chunks INTEGER NOT NULL,
    closed BOOLEAN NOT NULL,
    PRIMARY KEY (room_id, node_id, name),
    CONSTRAINT recording_captures_kind CHECK (kind IN ('audio', 'video')),
    CONSTRAINT recording_captures_sizes CHECK (bytes > 0 AND chunks > 0)
);

-- From when to when a track had a place on a media server and was muted or not. Written only while the room is recorded.
CREATE TABLE recording_spans (
    id BIGSERIAL PRIMARY KEY,
    room_id TEXT COLLATE "C" NOT NULL REFERENCES rooms ON DELETE CASCADE ON UPDATE RESTRICT,
    participant_id TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    track_id TEXT COLLATE "C" NOT NULL,
    kind TEXT NOT NULL,
    source TEXT NOT NULL,
    feed_id TEXT COLLATE "C" NOT NULL,
    mid TEXT NOT NULL,
    muted BOOLEAN NOT NULL,
    started_at TIMESTAMPTZ(3) NOT NULL,
    ended_at TIMESTAMPTZ(3)
);
CREATE INDEX recording_spans_room_id_idx ON recording_spans (room_id);
CREATE INDEX recording_spans_open_idx ON recording_spans (session_id, track_id) WHERE ended_at IS NULL;

-- Writes the spans in the transaction that changes a track, whichever process changes it. The definer's rights let the
-- gateway's role change tracks without rights on recordings.
CREATE FUNCTION callplane_record_span() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER SET search_path = public AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND (NEW.muted, NEW.feed_id, NEW.mid) = (OLD.muted, OLD.feed_id, OLD.mid) THEN
        RETURN NULL;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        UPDATE recording_spans SET ended_at = clock_timestamp()
        WHERE session_id = OLD.session_id AND track_id = OLD.track_id AND ended_at IS NULL;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO recording_spans (room_id, participant_id, session_id, track_id, kind, source, feed_id, mid, muted,
            started_at)
        SELECT s.room_id, s.participant_id, s.id, NEW.track_id, NEW.kind, NEW.source, NEW.feed_id, NEW.mid, NEW.muted,
            clock_timestamp()
        FROM participant_sessions s
        WHERE s.id = NEW.session_id
            AND EXISTS (SELECT FROM recordings r WHERE r.room_id = s.room_id AND r.status = 'recording');
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER session_tracks_record_span AFTER INSERT OR DELETE OR UPDATE OF muted, feed_id, mid ON session_tracks
    FOR EACH ROW EXECUTE FUNCTION callplane_record_span();

-- A retired key has no private part.
CREATE TABLE signing_keys (
    id TEXT COLLATE "C" PRIMARY KEY,
    status TEXT NOT NULL,
    public_jwk JSONB NOT NULL,
    private_key_sealed TEXT,
    created_at TIMESTAMPTZ(3) NOT NULL,
    activates_at TIMESTAMPTZ(3) NOT NULL,
    retired_at TIMESTAMPTZ(3),
    verifies_until TIMESTAMPTZ(3),
    CONSTRAINT signing_keys_status CHECK (status IN ('next', 'active', 'retired')),
    CONSTRAINT signing_keys_private_key CHECK ((status = 'retired') = (private_key_sealed IS NULL)),
    CONSTRAINT signing_keys_retired CHECK (
        (status = 'retired') = (retired_at IS NOT NULL) AND (status = 'retired') = (verifies_until IS NOT NULL)
    )
);
-- One key signs and at most one waits, also if several instances start or rotate at once.
CREATE UNIQUE INDEX signing_keys_active_key ON signing_keys (status) WHERE status = 'active';
CREATE UNIQUE INDEX signing_keys_next_key ON signing_keys (status) WHERE status = 'next';

-- The whole table is replaced within 24 hours.
CREATE TABLE idempotency_records (
    environment_id TEXT COLLATE "C" NOT NULL,
    route TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    request_hash BYTEA NOT NULL,
    made TEXT NOT NULL,
    created_at TIMESTAMPTZ(3) NOT NULL,
    expires_at TIMESTAMPTZ(3) NOT NULL,
    PRIMARY KEY (environment_id, route, key),
    CONSTRAINT idempotency_records_key_length CHECK (char_length(key) BETWEEN 1 AND 255),
    CONSTRAINT idempotency_records_hash_length CHECK (octet_length(request_hash) = 32)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_limit = 1000);
CREATE INDEX idempotency_records_expires_at_idx ON idempotency_records (expires_at);

CREATE TABLE webhook_endpoints (
    id TEXT COLLATE "C" PRIMARY KEY,
    environment_id TEXT COLLATE "C" NOT NULL REFERENCES environments ON DELETE RESTRICT ON UPDATE RESTRICT,
    url TEXT NOT NULL,
    events TEXT[] NOT NULL,
    description TEXT,
    enabled BOOLEAN NOT NULL,
    disabled_reason TEXT,
    signing_key_version INTEGER NOT NULL,
    created_at TIMESTAMPTZ(3) NOT NULL,
    updated_at TIMESTAMPTZ(3) NOT NULL,
    deleted_at TIMESTAMPTZ(3),
    slot_ms INTEGER,
    failing_since TIMESTAMPTZ(3),
    last_failed_at TIMESTAMPTZ(3),
    failing_reported_since TIMESTAMPTZ(3),
    ordering TEXT NOT NULL DEFAULT 'none',
    max_per_second INTEGER,
    max_concurrent INTEGER,
    next_attempt_at TIMESTAMPTZ(6) NOT NULL DEFAULT '-infinity'::timestamptz,
    standard_webhooks BOOLEAN NOT NULL DEFAULT false,
    retry_rejected BOOLEAN NOT NULL DEFAULT false,
    headers JSONB NOT NULL DEFAULT '{}',
    filter JSONB,
    next_signing_key_version INTEGER,
    next_activates_at TIMESTAMPTZ(3),
    CONSTRAINT webhook_endpoints_url_length CHECK (char_length(url) BETWEEN 1 AND 2048),
    CONSTRAINT webhook_endpoints_events CHECK (cardinality(events) >= 1),
    CONSTRAINT webhook_endpoints_version CHECK (signing_key_version >= 1),
    CONSTRAINT webhook_endpoints_next_version CHECK (
        (next_signing_key_version IS NULL) = (next_activates_at IS NULL) AND next_signing_key_version > signing_key_version
    ),
    CONSTRAINT webhook_endpoints_ordering CHECK (ordering IN ('none', 'room')),
    CONSTRAINT webhook_endpoints_max_per_second CHECK (max_per_second BETWEEN 1 AND 1000),
    CONSTRAINT webhook_endpoints_max_concurrent CHECK (max_concurrent BETWEEN 1 AND 100),
    CONSTRAINT webhook_endpoints_headers_object CHECK (jsonb_typeof(headers) = 'object'),
    CONSTRAINT webhook_endpoints_filter_object CHECK (jsonb_typeof(filter) = 'object')
);
CREATE INDEX webhook_endpoints_environment_id_id_idx ON webhook_endpoints (environment_id, id DESC);
-- The endpoints that an event is sent to.
CREATE INDEX webhook_endpoints_fan_out_idx ON webhook_endpoints (environment_id) WHERE deleted_at IS NULL;
CREATE INDEX webhook_endpoints_deleted_idx ON webhook_endpoints (deleted_at) WHERE deleted_at IS NOT NULL;

CREATE TABLE webhook_secrets (
    endpoint_id TEXT COLLATE "C" NOT NULL REFERENCES webhook_endpoints ON DELETE CASCADE ON UPDATE RESTRICT,
    version INTEGER NOT NULL,
    secret_sealed TEXT NOT NULL,
    created_at TIMESTAMPTZ(3) NOT NULL,
    PRIMARY KEY (endpoint_id, version),
    CONSTRAINT webhook_secrets_version CHECK (version >= 1)
);

-- Rows are inserted, rarely erased, and deleted. Frequent small runs of autovacuum freeze them early.
CREATE TABLE events (
    id TEXT COLLATE "C" PRIMARY KEY,
    environment_id TEXT COLLATE "C" NOT NULL,
    type TEXT NOT NULL,
    room_id TEXT COLLATE "C",
    sequence INTEGER,
    traceparent TEXT,
    body TEXT NOT NULL,
    created_at TIMESTAMPTZ(3) NOT NULL,
    participant_id TEXT COLLATE "C",
    erased_at TIMESTAMPTZ(3),
    transaction_id BIGINT NOT NULL DEFAULT (pg_current_xact_id()::text::bigint + callplane_transaction_offset()),
    CONSTRAINT events_sequence CHECK ((room_id IS NULL) = (sequence IS NULL) AND sequence >= 1)
) WITH (
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_limit = 1000
);
CREATE INDEX events_environment_id_transaction_id_id_idx ON events (environment_id, transaction_id, id);
CREATE INDEX events_environment_id_type_transaction_id_id_idx ON events (environment_id, type, transaction_id, id);
CREATE INDEX events_created_at_idx ON events (created_at);
-- An expression, so that PostgreSQL cannot search by `events_created_at_idx`, which holds the events of all environments.
CREATE INDEX events_environment_created_idx ON events (environment_id, (created_at AT TIME ZONE 'UTC'), transaction_id);
-- No two events of a room have the same number.
CREATE UNIQUE INDEX events_room_sequence_key ON events (room_id, sequence) WHERE room_id IS NOT NULL;
CREATE INDEX events_participant_id_idx ON events (participant_id) WHERE participant_id IS NOT NULL;

-- No foreign keys: the participant itself may be deleted before its events.
CREATE TABLE participant_erasures (
    participant_id TEXT COLLATE "C" PRIMARY KEY,
    environment_id TEXT COLLATE "C" NOT NULL,
    requested_at TIMESTAMPTZ(3) NOT NULL DEFAULT transaction_timestamp()
);

-- Each delivery leaves two dead rows. By default, autovacuum of a table of 5 million rows waits for a million dead ones.
CREATE TABLE webhook_deliveries (
    id TEXT COLLATE "C" PRIMARY KEY,
    environment_id TEXT COLLATE "C" NOT NULL,
    endpoint_id TEXT COLLATE "C" NOT NULL REFERENCES webhook_endpoints ON DELETE RESTRICT ON UPDATE RESTRICT,
    event_id TEXT COLLATE "C" NOT NULL REFERENCES events ON DELETE RESTRICT ON UPDATE RESTRICT,
    event_type TEXT NOT NULL,
    room_id TEXT COLLATE "C",
    sequence INTEGER,
    status TEXT NOT NULL,
    failure_reason TEXT,
    replay_count INTEGER NOT NULL DEFAULT 0,
    run_attempts INTEGER NOT NULL DEFAULT 0,
    run_started_at TIMESTAMPTZ(3) NOT NULL DEFAULT transaction_timestamp(),
    url TEXT,
    secret_version INTEGER,
    due_at TIMESTAMPTZ(3) NOT NULL DEFAULT transaction_timestamp(),
    lease_token UUID,
    lease_expires_at TIMESTAMPTZ(3),
    created_at TIMESTAMPTZ(3) NOT NULL,
    completed_at TIMESTAMPTZ(3),
    CONSTRAINT webhook_deliveries_status CHECK (status IN ('pending', 'delivering', 'succeeded', 'failed')),
    CONSTRAINT webhook_deliveries_failure_reason CHECK (
        failure_reason IN ('attempts_exhausted', 'rejected', 'unsafe_destination', 'run_expired', 'endpoint_deleted')
    ),
    CONSTRAINT webhook_deliveries_failed CHECK ((status = 'failed') = (failure_reason IS NOT NULL)),
    CONSTRAINT webhook_deliveries_replay_count CHECK (replay_count BETWEEN 0 AND 100),
    CONSTRAINT webhook_deliveries_run_attempts CHECK (run_attempts BETWEEN 0 AND 8),
    CONSTRAINT webhook_deliveries_pinned CHECK ((url IS NULL) = (secret_version IS NULL)),
    CONSTRAINT webhook_deliveries_lease CHECK (
        (lease_token IS NULL) = (lease_expires_at IS NULL) AND (status = 'delivering') = (lease_token IS NOT NULL)
    )
) WITH (
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.02, autovacuum_vacuum_cost_limit = 1000
);
CREATE INDEX webhook_deliveries_endpoint_id_id_idx ON webhook_deliveries (endpoint_id, id DESC);
CREATE INDEX webhook_deliveries_event_id_idx ON webhook_deliveries (event_id);
-- Lists with filters, newest first. A list that filters by one of type and status merges the ranges of the other.
CREATE INDEX webhook_deliveries_filtered_idx ON webhook_deliveries (endpoint_id, event_type, status, (id || '') DESC);
CREATE INDEX webhook_deliveries_reason_idx ON webhook_deliveries (endpoint_id, failure_reason, event_type, (id || '') DESC)
    WHERE failure_reason IS NOT NULL;
-- The due deliveries of an endpoint, and the endpoints that have any.
CREATE INDEX webhook_deliveries_due_idx ON webhook_deliveries (endpoint_id, due_at) WHERE status = 'pending';
CREATE INDEX webhook_deliveries_lease_expires_at_idx ON webhook_deliveries (lease_expires_at)
    WHERE lease_expires_at IS NOT NULL;
CREATE INDEX webhook_deliveries_pending_run_idx ON webhook_deliveries (run_started_at) WHERE status = 'pending';
CREATE INDEX webhook_deliveries_open_endpoint_id_idx ON webhook_deliveries (endpoint_id, id)
    WHERE status IN ('pending', 'delivering');
-- The open deliveries of a room in their order, first runs and replays apart; and those in flight.
CREATE INDEX webhook_deliveries_line_idx ON webhook_deliveries (endpoint_id, room_id, (replay_count > 0), sequence)
    WHERE status IN ('pending', 'delivering');
CREATE INDEX webhook_deliveries_in_flight_idx ON webhook_deliveries (endpoint_id, room_id) WHERE status = 'delivering';
-- Recoveries read the failed ones of a time window, retention the oldest finished ones.
CREATE INDEX webhook_deliveries_failed_idx ON webhook_deliveries (endpoint_id, id) WHERE status = 'failed';
CREATE INDEX webhook_deliveries_completed_idx ON webhook_deliveries (completed_at) WHERE status IN ('succeeded', 'failed');

-- Rows are only inserted and deleted. Frequent small runs of autovacuum freeze them early.
CREATE TABLE webhook_attempts (
    id TEXT COLLATE "C" PRIMARY KEY,
    delivery_id TEXT COLLATE "C" NOT NULL REFERENCES webhook_deliveries ON DELETE CASCADE ON UPDATE RESTRICT,
    endpoint_id TEXT COLLATE "C" NOT NULL,
    replay_count INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    url TEXT NOT NULL,
    signing_key_version INTEGER NOT NULL,
    started_at TIMESTAMPTZ(3) NOT NULL,
    duration_ms INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    error_code TEXT,
    status_code INTEGER,
    address TEXT,
    dns_ms INTEGER,
    connect_ms INTEGER,
    tls_ms INTEGER,
    first_byte_ms INTEGER,
    response_body TEXT,
    response_truncated BOOLEAN NOT NULL DEFAULT false,
    exchange JSONB,
    CONSTRAINT webhook_attempts_outcome CHECK (
        outcome IN ('success', 'dns', 'connect', 'tls', 'timeout', 'response', 'blocked')
    ),
    CONSTRAINT webhook_attempts_attempt CHECK (attempt BETWEEN 1 AND 8),
    CONSTRAINT webhook_attempts_blocked CHECK (outcome <> 'blocked' OR address IS NULL)
) WITH (
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_limit = 1000
);
CREATE INDEX webhook_attempts_delivery_id_id_idx ON webhook_attempts (delivery_id, id);
-- The statistics of an endpoint read nothing else.
CREATE INDEX webhook_attempts_endpoint_id_started_at_outcome_duration_ms_idx ON webhook_attempts (endpoint_id, started_at, outcome, duration_ms);

CREATE TABLE webhook_recoveries (
    id TEXT COLLATE "C" PRIMARY KEY,
    environment_id TEXT COLLATE "C" NOT NULL,
    endpoint_id TEXT COLLATE "C" NOT NULL REFERENCES webhook_endpoints ON DELETE RESTRICT ON UPDATE RESTRICT,
    since TIMESTAMPTZ(3) NOT NULL,
    until TIMESTAMPTZ(3) NOT NULL,
    dry_run BOOLEAN NOT NULL,
    include_pending BOOLEAN NOT NULL DEFAULT false,
    status TEXT NOT NULL,
    matched INTEGER NOT NULL DEFAULT 0,
    replayed INTEGER NOT NULL DEFAULT 0,
    skipped INTEGER NOT NULL DEFAULT 0,
    woken INTEGER NOT NULL DEFAULT 0,
    in_flight TEXT[] NOT NULL DEFAULT '{}',
    position TEXT COLLATE "C",
    lease_token UUID,
    lease_expires_at TIMESTAMPTZ(3),
    created_at TIMESTAMPTZ(3) NOT NULL,
    completed_at TIMESTAMPTZ(3),
    CONSTRAINT webhook_recoveries_status CHECK (status IN ('pending', 'completed', 'cancelled')),
    CONSTRAINT webhook_recoveries_lease CHECK ((lease_token IS NULL) = (lease_expires_at IS NULL))
);
CREATE INDEX webhook_recoveries_endpoint_id_id_idx ON webhook_recoveries (endpoint_id, id DESC);
CREATE INDEX webhook_recoveries_pending_idx ON webhook_recoveries (created_at) WHERE status = 'pending';

CREATE TABLE usage_days (
    environment_id TEXT COLLATE "C" NOT NULL,
    day DATE NOT NULL,
    rooms INTEGER NOT NULL,
    participant_ms BIGINT NOT NULL,
    peak_participants INTEGER NOT NULL,
    measured_sessions INTEGER NOT NULL,
    relayed_sessions INTEGER NOT NULL,
    deliveries INTEGER NOT NULL,
    PRIMARY KEY (environment_id, day)
);

-- Written when recordings end and when their files are complete, so that it outlives them.
CREATE TABLE usage_recordings (
    environment_id TEXT COLLATE "C" NOT NULL,
    day DATE NOT NULL,
    recorded_ms BIGINT NOT NULL,
    converted_ms BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    PRIMARY KEY (environment_id, day)
);

CREATE TABLE usage_rollups (
    day DATE PRIMARY KEY,
    rolled_up_at TIMESTAMPTZ(3) NOT NULL DEFAULT transaction_timestamp()
);

-- A few rows that change every few seconds.
CREATE TABLE sweeps (
    name TEXT COLLATE "C" PRIMARY KEY,
    holder TEXT NOT NULL,
    held_until TIMESTAMPTZ(3) NOT NULL,
    finished_at TIMESTAMPTZ(3)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
