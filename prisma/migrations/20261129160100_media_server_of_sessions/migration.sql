-- The media server that the column `media` names, for the counts of sessions. It has no default, so the table is locked
-- for a moment. Older versions of the apps leave it null: their sessions count for the server of their room.

ALTER TABLE participant_sessions ADD COLUMN media_node_id TEXT COLLATE "C";
