-- Why: `failing_reported_since` lets one of several workers log that an endpoint fails, and that it works again.
-- Locks: webhook_endpoints for the moment of adding a column without a default. `IF NOT EXISTS`, here and in the next
-- migrations, because databases of developers have the column from a migration that this one was part of.

ALTER TABLE "webhook_endpoints" ADD COLUMN IF NOT EXISTS "failing_reported_since" TIMESTAMPTZ(3);
