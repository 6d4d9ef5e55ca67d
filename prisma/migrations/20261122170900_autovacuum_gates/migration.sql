-- Why: a few rows that each claim of a limited endpoint updates.
-- Locks: webhook_gates for a moment, without stopping reads or writes.

ALTER TABLE "webhook_gates" SET (autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
