/** How long `GET /v1/events` may wait: below the 60 s after which load balancers usually give up a request. */
export const EVENT_WAIT_SECONDS_MAX = 30;
/** Requests of one environment that may wait for events at one API process. */
export const EVENT_WAITS_PER_ENVIRONMENT_MAX = 20;
/** Requests of all environments that may wait for events at one API process. */
export const EVENT_WAITS_MAX = 1000;
/** Interval between two reads for all waiting requests of an API process, in milliseconds. */
export const EVENT_READ_EVERY_MS = 500;

/** Bounds of a message to participants, equal for clients and for the server. */
export const MESSAGE_BYTES_MAX = 16 * 1024;
export const MESSAGE_RECIPIENTS_MAX = 100;

/** The `from` of a message that the server sends. Participant ids begin with `part_`. */
export const SERVER_SENDER = 'server';

/** After this time without a heartbeat, in milliseconds, the cleanup worker ends the sessions of an instance. */
export const INSTANCE_DEAD_MS = 8000;
