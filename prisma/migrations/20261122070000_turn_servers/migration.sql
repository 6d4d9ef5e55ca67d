-- Why: cleanup workers close the relays of sessions that have ended through the administration interface of each TURN
-- server. How that went last is kept here, so that `rtc doctor` can say it. Locks: none, the table is new.

CREATE TABLE "turn_servers" (
    "address" TEXT COLLATE "C" NOT NULL,
    "state" TEXT NOT NULL,
    "checked_at" TIMESTAMPTZ(3) NOT NULL,
    CONSTRAINT "turn_servers_pkey" PRIMARY KEY ("address"),
    CONSTRAINT "turn_servers_state" CHECK ("state" IN ('up', 'down', 'unreachable'))
);
