/** The tables of options and event types: the part of this package that pages in a browser import, without Node. */
export { EVENT_TEXTS, EVENT_TYPES, type EventType } from './events/event-types.js';
export * from './options/option-table.js';
export * from './rooms/room-options.js';
export * from './webhooks/endpoint-options.js';
export type { RecordingInput } from './recordings/recording.js';
export type { WebhookFilter } from './webhooks/filter-type.js';
