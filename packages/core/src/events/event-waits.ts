/** How long `GET /v1/events` may wait: below the 60 s after which load balancers usually give up a request. */
export const EVENT_WAIT_SECONDS_MAX = 30;
/** Requests of one environment that may wait for events at one API process. */
export const EVENT_WAITS_PER_ENVIRONMENT_MAX = 20;
/** Requests of all environments that may wait for events at one API process. */
export const EVENT_WAITS_MAX = 1000;
/** Interval between two reads for all waiting requests of an API process, in milliseconds. */
export const EVENT_READ_EVERY_MS = 500;
