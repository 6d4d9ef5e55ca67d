/** After this time without a heartbeat, in milliseconds, the cleanup worker ends the sessions of an instance. */
export const INSTANCE_DEAD_MS = 8000;
