/** How often a signaling instance says that it lives, and after how long a silence it is dead, in milliseconds. */
export const INSTANCE_HEARTBEAT_MS = 2000;
export const INSTANCE_DEAD_MS = 8000;
