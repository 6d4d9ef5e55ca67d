-- Why: the list of events goes by the transactions that wrote them. Restored from a logical dump into a younger cluster,
-- whose transactions have lower numbers, it would hide old events for long, and put new ones behind the cursors of
-- readers. So numbers get an offset: 0, until "rtc db migrate" finds that the cluster is younger than its events. It is
-- the body of a function, which costs nothing to read and is dumped with the rest. Locks: events for the moment of
-- changing a default.

CREATE FUNCTION "callplane_transaction_offset"() RETURNS BIGINT LANGUAGE sql STABLE PARALLEL SAFE RETURN 0::BIGINT;

ALTER TABLE "events" ALTER COLUMN "transaction_id" SET DEFAULT (((pg_current_xact_id())::text)::bigint + callplane_transaction_offset());
