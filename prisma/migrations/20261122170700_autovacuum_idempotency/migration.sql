-- Why: the whole table is replaced within 24 hours, so a fifth of it as dead rows is hours of requests.
-- Locks: idempotency_records for a moment, without stopping reads or writes.

ALTER TABLE "idempotency_records" SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_limit = 1000);
