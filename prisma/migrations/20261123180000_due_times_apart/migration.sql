-- Why: searches for the first pending delivery of an endpoint could choose the index by due time, and read the dead
-- entries of all endpoints behind an old snapshot: 26 s for ten endpoints (docs/decisions/0039). With a condition of its
-- own, that index serves only searches without an endpoint.
-- Locks: none that reads or writes wait for; the index is built concurrently.
-- contract: the previous release reads due times through webhook_deliveries_due_idx until it is replaced, which takes
-- longer and finds the same rows.

CREATE INDEX CONCURRENTLY "webhook_deliveries_due_time_idx" ON "webhook_deliveries"("due_at") WHERE ('' || "status") = 'pending';
DROP INDEX CONCURRENTLY "webhook_deliveries_due_at_idx";
