-- Header extension of a track, which another media server that gets the track has to know. It has no default, so the
-- table is locked for a moment. Older versions of the apps leave it null.

ALTER TABLE session_tracks ADD COLUMN extension_id INTEGER;
