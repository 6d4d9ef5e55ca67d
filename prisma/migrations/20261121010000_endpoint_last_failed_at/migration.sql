-- Why: an endpoint is disabled for having only failed over days when failures happened over these days; one failure and
-- silence since then say nothing. Locks: webhook_endpoints for the moment of adding a column without a default.

ALTER TABLE "webhook_endpoints" ADD COLUMN "last_failed_at" TIMESTAMPTZ(3);
