-- Sessions go to media servers of their region first (docs/decisions/0023-several-media-servers.md). The column has no
-- default, and the table a row for each media server, so its locks are short. Older agents leave the region as it is.

ALTER TABLE media_nodes ADD COLUMN region TEXT;
ALTER TABLE media_nodes ADD CONSTRAINT media_nodes_region CHECK (region IS NULL OR (url IS NOT NULL AND region ~ '^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$')) NOT VALID;
ALTER TABLE media_nodes VALIDATE CONSTRAINT media_nodes_region;
