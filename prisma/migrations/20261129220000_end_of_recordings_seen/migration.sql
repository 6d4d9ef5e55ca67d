-- From when on a pass of an agent has seen that a recording is over. It has no default, so the table is locked for a
-- moment. Older versions of the recorder leave it null.

ALTER TABLE recordings ADD COLUMN end_seen_at TIMESTAMPTZ(3);
