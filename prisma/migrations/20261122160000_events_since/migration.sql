-- Why: `GET /v1/events?since=` finds its position among the events of one environment, instead of those of all. The time
-- is indexed as an expression, so that PostgreSQL cannot search by the index of creation times, which holds the events
-- of all environments.
-- Locks: none that reads or writes wait for; the index is built concurrently. The version before does not know it.

CREATE INDEX CONCURRENTLY "events_environment_created_idx" ON "events"("environment_id", ("created_at" AT TIME ZONE 'UTC'), "transaction_id");
