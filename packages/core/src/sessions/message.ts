/** Bounds of a message to participants, equal for clients and for the server. */
export const MESSAGE_BYTES_MAX = 16 * 1024;
export const MESSAGE_RECIPIENTS_MAX = 100;

/** The `from` of a message that the server sends. Participant ids begin with `part_`. */
export const SERVER_SENDER = 'server';
