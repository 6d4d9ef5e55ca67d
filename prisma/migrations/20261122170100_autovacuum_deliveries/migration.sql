-- Why: each delivery leaves two dead rows. With the default of 20 %, a table of 5 million rows collects a million of them.
-- Locks: webhook_deliveries for a moment, without stopping reads or writes.

ALTER TABLE "webhook_deliveries" SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02, autovacuum_vacuum_cost_limit = 1000);
