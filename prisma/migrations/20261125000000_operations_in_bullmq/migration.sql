-- contract: jobs of operations are worked on by their processors, and nothing counts or dates wake-ups any more.
ALTER TABLE "runtime_operations" DROP COLUMN "woken_at", DROP COLUMN "wake_ups";
DROP INDEX "rooms_status_name_idx";
CREATE INDEX "rooms_status_name_idx" ON "rooms"("environment_id", "status", "name" COLLATE "C", "id");
DROP INDEX "participants_external_id_idx";
CREATE INDEX "participants_external_id_idx" ON "participants"("room_id", "external_id", "connected_at" DESC, "id" DESC) WHERE "external_id" IS NOT NULL AND "connected_at" IS NOT NULL;
