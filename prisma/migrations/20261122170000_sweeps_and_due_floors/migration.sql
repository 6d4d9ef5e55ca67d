-- Why: one elected process does each sweep, and scans for due rows begin at a floor (docs/decisions/0039). The previous
-- release does not know the tables: its workers scan and sweep without them.
-- Locks: none of existing tables.

-- The process that does a periodic task for all processes of its app.
CREATE TABLE "sweeps" (
    "name" TEXT COLLATE "C" NOT NULL,
    "holder" TEXT NOT NULL,
    "held_until" TIMESTAMPTZ(3) NOT NULL,
    "finished_at" TIMESTAMPTZ(3),
    CONSTRAINT "sweeps_pkey" PRIMARY KEY ("name")
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- No row of the queue is due before the floor, except for those of its backlogs.
CREATE TABLE "due_floors" (
    "queue" TEXT COLLATE "C" NOT NULL,
    "floor" TIMESTAMPTZ(3) NOT NULL,
    "checked_at" TIMESTAMPTZ(3) NOT NULL,
    CONSTRAINT "due_floors_pkey" PRIMARY KEY ("queue")
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);

-- The key is an endpoint (deliveries) or an environment (operations). No foreign key: a step removes the row.
CREATE TABLE "due_backlogs" (
    "queue" TEXT COLLATE "C" NOT NULL,
    "key" TEXT COLLATE "C" NOT NULL,
    "is_retry" BOOLEAN NOT NULL,
    "since" TIMESTAMPTZ(3) NOT NULL,
    CONSTRAINT "due_backlogs_pkey" PRIMARY KEY ("queue", "key", "is_retry")
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.01);
