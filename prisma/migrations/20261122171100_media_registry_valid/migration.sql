-- Why: validates the constraints of the migration before (docs/decisions/0035).
-- Locks: none that reads or writes wait for.

ALTER TABLE "media_nodes" VALIDATE CONSTRAINT "media_nodes_url";
ALTER TABLE "media_nodes" VALIDATE CONSTRAINT "media_nodes_capacity";
ALTER TABLE "media_nodes" VALIDATE CONSTRAINT "media_nodes_registered";
