-- Cleanup workers scan for due operations and take turns by environment: they walk from one environment with pending
-- rows to the next, and read the first due rows of each. Without this index one environment's 100,000 due rows would be
-- read to find the one row of another.
--
-- Locks writes to runtime_operations while it is built. It holds pending rows alone, which are few.
CREATE INDEX "runtime_operations_environment_due_idx" ON "runtime_operations"("environment_id", "due_at") WHERE "status" = 'pending';
