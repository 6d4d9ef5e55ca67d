-- The media servers that each one does not reach on the ports of forwards, as its agent says. A column without a default
-- locks the table for a moment. Older versions of the apps ignore it.

ALTER TABLE media_nodes ADD COLUMN unreached TEXT[];
