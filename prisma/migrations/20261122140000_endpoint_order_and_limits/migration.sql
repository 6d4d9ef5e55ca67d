-- Why: an endpoint may get the events of a room in order, at a limited rate and concurrency, and with the headers of
-- Standard Webhooks (docs/decisions/0031).
-- Locks: webhook_endpoints for the moment of adding columns with constant defaults, and constraints that are validated
-- later. The previous release neither reads nor writes the columns.

ALTER TABLE "webhook_endpoints"
    ADD COLUMN "ordering" TEXT NOT NULL DEFAULT 'none',
    ADD COLUMN "max_per_second" INTEGER,
    ADD COLUMN "max_concurrent" INTEGER,
    ADD COLUMN "standard_webhooks" BOOLEAN NOT NULL DEFAULT false,
    ADD CONSTRAINT "webhook_endpoints_ordering" CHECK ("ordering" IN ('none', 'room')) NOT VALID,
    ADD CONSTRAINT "webhook_endpoints_max_per_second" CHECK ("max_per_second" BETWEEN 1 AND 1000) NOT VALID,
    ADD CONSTRAINT "webhook_endpoints_max_concurrent" CHECK ("max_concurrent" BETWEEN 1 AND 100) NOT VALID;
