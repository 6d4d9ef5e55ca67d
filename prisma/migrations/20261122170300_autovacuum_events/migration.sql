-- Why: rows are inserted, rarely erased, and deleted. Frequent small runs freeze them early and free the space of deleted ones.
-- Locks: events for a moment, without stopping reads or writes.

ALTER TABLE "events" SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_limit = 1000);
