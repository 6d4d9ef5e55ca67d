-- Why: wake-ups and claims change no indexed column, so a row with room on its page is updated without touching indexes.
-- Locks: runtime_operations for a moment, without stopping reads or writes.

ALTER TABLE "runtime_operations" SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500, autovacuum_analyze_scale_factor = 0.05);
