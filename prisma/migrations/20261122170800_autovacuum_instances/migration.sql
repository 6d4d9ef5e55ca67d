-- Why: a few rows that every gateway updates every two seconds.
-- Locks: signaling_instances for a moment, without stopping reads or writes.

ALTER TABLE "signaling_instances" SET (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
