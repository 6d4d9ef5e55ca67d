-- Why: a session is updated several times during its life. The index of live sessions is read every 5 s.
-- Locks: participant_sessions for a moment, without stopping reads or writes.

ALTER TABLE "participant_sessions" SET (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02, autovacuum_vacuum_cost_limit = 1000);
