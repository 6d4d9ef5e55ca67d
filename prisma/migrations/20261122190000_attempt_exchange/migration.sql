-- Why: the log of an attempt shows the headers of the request, the addresses that were tried before, and headers of a bad
-- answer (docs/decisions/0049). Workers of the previous release leave the column null.
-- Locks: webhook_attempts for the moment of adding a column without a default.

ALTER TABLE "webhook_attempts" ADD COLUMN "exchange" JSONB;
