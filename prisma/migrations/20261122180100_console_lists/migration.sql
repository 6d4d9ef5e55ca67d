-- Why: GET /v1/rooms?namePrefix= reads a range of names in the order of their bytes, and GET …/tokens the participants of
-- a room in the order of their creation (docs/decisions/0047).
-- Locks: none that reads or writes wait for; the indexes are built concurrently.
-- contract: the previous release finds the rooms of one name through rooms_name_idx, and until it is replaced reads those
-- of the environment; rooms_status_name_idx serves exact names, too. A foreign key was the only reader of
-- participants_room_id_idx, and participants_room_id_id_idx begins with the same column.

CREATE INDEX CONCURRENTLY "rooms_status_name_idx" ON "rooms"("environment_id", "status", "name" COLLATE "C", ("id" || ''));
CREATE INDEX CONCURRENTLY "participants_room_id_id_idx" ON "participants"("room_id", "id" DESC);
DROP INDEX CONCURRENTLY "rooms_name_idx";
DROP INDEX CONCURRENTLY "participants_room_id_idx";
