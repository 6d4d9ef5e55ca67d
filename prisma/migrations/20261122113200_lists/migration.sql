-- Why: lists with filters have an index that serves them at any size: events of a type, deliveries by type and status,
-- recoveries of an endpoint, rooms of a name, participants of an external id.
-- Locks: none that reads or writes wait for; the indexes are built concurrently. The version before does not know them.

-- Readers that wait for events of one type.
CREATE INDEX CONCURRENTLY "events_environment_id_type_transaction_id_id_idx" ON "events"("environment_id", "type", "transaction_id", "id");

-- Every combination of event type and status, newest first. A list that filters by one of both merges the ranges of the
-- other. Environment-wide lists merge those of the endpoints. Ids are indexed as an expression, here and below, so that
-- PostgreSQL cannot serve the order by an index without the filters: for a rare value it would read every row.
CREATE INDEX CONCURRENTLY "webhook_deliveries_filtered_idx" ON "webhook_deliveries"("endpoint_id", "event_type", "status", ("id" || '') DESC);

-- Replaces the index that begins with the same column.
CREATE INDEX CONCURRENTLY "webhook_recoveries_endpoint_id_id_idx" ON "webhook_recoveries"("endpoint_id", "id" DESC);
DROP INDEX CONCURRENTLY "webhook_recoveries_endpoint_id_idx";

CREATE INDEX CONCURRENTLY "rooms_name_idx" ON "rooms"("environment_id", "name", "status", ("id" || '') DESC);

CREATE INDEX CONCURRENTLY "participants_external_id_idx" ON "participants"("room_id", "external_id", "connected_at" DESC, ("id" || '') DESC) WHERE "external_id" IS NOT NULL AND "connected_at" IS NOT NULL;
