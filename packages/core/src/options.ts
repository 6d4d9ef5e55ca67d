/** The tables of options: the part of this package that pages in a browser import. It needs nothing of Node. */
export * from './options/option-table.js';
export * from './rooms/room-options.js';
export * from './webhooks/endpoint-options.js';
export type { RecordingInput } from './recordings/recording.js';
