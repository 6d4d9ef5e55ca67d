/**
 * The signaling protocol, version 1: every message that a client and the gateway exchange over the WebSocket, one JSON
 * object a text frame. docs/signaling.md explains it, docs/signaling.schema.json is generated from it.
 */
export * from './client-messages.js';
export * from './close-reasons.js';
export * from './error-codes.js';
export * from './limits.js';
export * from './server-messages.js';
export * from './shapes.js';
