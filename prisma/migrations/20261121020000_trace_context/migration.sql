-- Why: what a request causes is logged under its trace, and receivers of webhooks are told it: the header `traceparent`
-- of W3C Trace Context stays with the operation and the event. Locks: both tables for the moment of adding a column
-- without a default (no rewrite).

ALTER TABLE "runtime_operations" ADD COLUMN "traceparent" TEXT;
ALTER TABLE "events" ADD COLUMN "traceparent" TEXT;
