-- Why: recoveries read the open deliveries of an endpoint in the order of their ids, so their index has the id, too.
-- Locks: none that reads or writes wait for; the index is built concurrently.
-- contract: the new index serves every statement that used the dropped one, also those of the previous release.

CREATE INDEX CONCURRENTLY "webhook_deliveries_open_endpoint_id_idx" ON "webhook_deliveries"("endpoint_id", "id") WHERE "status" IN ('pending', 'delivering');
DROP INDEX CONCURRENTLY "webhook_deliveries_open_endpoint_idx";
