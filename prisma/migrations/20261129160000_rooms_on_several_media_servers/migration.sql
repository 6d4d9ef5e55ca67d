-- Rooms over several media servers (docs/decisions/0023-several-media-servers.md). The default is a constant, so the
-- table is locked for a moment and not rewritten. Older versions of the apps ignore both: until MEDIA_NODES_PER_ROOM is
-- above 1, nothing is written here.

ALTER TABLE rooms ADD COLUMN further_node_ids TEXT[] NOT NULL DEFAULT '{}';

-- A few rows for each room on several servers. Gateways move `wanted_until` on every few seconds.
CREATE TABLE media_forwards (
    id TEXT COLLATE "C" PRIMARY KEY,
    environment_id TEXT COLLATE "C" NOT NULL,
    room_id TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    feed_id TEXT COLLATE "C" NOT NULL,
    from_node_id TEXT COLLATE "C" NOT NULL,
    to_node_id TEXT COLLATE "C" NOT NULL,
    port INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'opening',
    mids TEXT[] NOT NULL DEFAULT '{}',
    created_at TIMESTAMPTZ(3) NOT NULL,
    wanted_until TIMESTAMPTZ(3) NOT NULL,
    CONSTRAINT media_forwards_state CHECK (state IN ('opening', 'up', 'closing'))
) WITH (fillfactor = 50);

CREATE UNIQUE INDEX media_forwards_to_node_id_port_key ON media_forwards (to_node_id, port);
CREATE INDEX media_forwards_feed_id_idx ON media_forwards (feed_id);
CREATE INDEX media_forwards_room_id_idx ON media_forwards (room_id);

-- One gateway at a time opens a forward of a feed to a server.
CREATE UNIQUE INDEX media_forwards_opening ON media_forwards (feed_id, to_node_id) WHERE state = 'opening';
