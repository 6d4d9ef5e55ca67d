-- Why: people sign in to the console (docs/decisions/0047).
-- Locks: environments, which the foreign key refers to, against writes for a moment. The table is new.

CREATE TABLE "console_sessions" (
    "id" TEXT COLLATE "C" NOT NULL,
    "environment_id" TEXT COLLATE "C" NOT NULL,
    "api_key_id" TEXT COLLATE "C",
    "code_hash" BYTEA,
    "secret_hash" BYTEA,
    "scopes" TEXT[],
    "read_only" BOOLEAN NOT NULL,
    "lifetime_seconds" INTEGER NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT transaction_timestamp(),
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "used_at" TIMESTAMPTZ(3) NOT NULL DEFAULT transaction_timestamp(),

    CONSTRAINT "console_sessions_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "console_sessions_environment_id_fkey" FOREIGN KEY ("environment_id") REFERENCES "environments"("id") ON DELETE RESTRICT ON UPDATE RESTRICT,
    CONSTRAINT "console_sessions_hashes" CHECK (("code_hash" IS NULL) <> ("secret_hash" IS NULL) AND length(COALESCE("code_hash", "secret_hash")) = 32),
    CONSTRAINT "console_sessions_lifetime" CHECK ("lifetime_seconds" BETWEEN 1 AND 86400),
    CONSTRAINT "console_sessions_expiry" CHECK ("expires_at" > "created_at")
);
CREATE UNIQUE INDEX "console_sessions_code_hash_key" ON "console_sessions"("code_hash");
CREATE UNIQUE INDEX "console_sessions_secret_hash_key" ON "console_sessions"("secret_hash");
CREATE INDEX "console_sessions_environment_id_id_idx" ON "console_sessions"("environment_id", "id");
CREATE INDEX "console_sessions_expires_at_idx" ON "console_sessions"("expires_at");
