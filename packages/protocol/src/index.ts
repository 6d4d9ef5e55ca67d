/**
 * The signaling protocol: every message that a client and the gateway exchange over the WebSocket. Each text frame holds
 * one JSON object. docs/signaling.md explains the protocol. docs/signaling.schema.json is generated from these schemas.
 */
export * from './client-messages.js';
export * from './codes.js';
export * from './limits.js';
export * from './server-messages.js';
export * from './shapes.js';
