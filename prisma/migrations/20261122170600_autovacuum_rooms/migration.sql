-- Why: every event of a room updates its sequence and version, which no index has: a row with room on its page is updated in place.
-- Locks: rooms for a moment, without stopping reads or writes.

ALTER TABLE "rooms" SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
