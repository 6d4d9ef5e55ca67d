/**
 * Every reason for which the gateway closes a connection. The gateway first sends a `closing` message with the reason,
 * then the WebSocket close frame. The frame's code is `code`; its reason text is the key.
 *
 * `reconnect` tells the client how to continue:
 * - `no`: stay away. The session is over, or the gateway would refuse the client again.
 * - `resume`: connect to any instance and send `resume`. The session lives on for the grace period. A client without a
 *   session sends `join`.
 *   After `moved`, `welcome` names the session in the other room.
 * - `join`: try the token again later.
 */
export const CLOSE_REASONS = {
  left: { code: 4000, reconnect: 'no', message: 'Left the room.' },
  removed: { code: 4001, reconnect: 'no', message: 'Removed from the room.' },
  room_ended: { code: 4002, reconnect: 'no', message: 'Room ended.' },
  superseded: { code: 4003, reconnect: 'no', message: 'Another connection of this participant joined.' },
  token_expired: { code: 4004, reconnect: 'no', message: 'Token expired. Request a new one from your backend.' },
  invalid_token: { code: 4005, reconnect: 'no', message: 'Invalid token.' },
  invalid_session: { code: 4006, reconnect: 'join', message: 'Session unknown or ended.' },
  capacity: { code: 4007, reconnect: 'join', message: 'Room full.' },
  media_unavailable: { code: 4008, reconnect: 'join', message: 'No media server available.' },
  drain: { code: 4009, reconnect: 'resume', message: 'Gateway shutting down. Reconnect to another instance.' },
  unavailable: { code: 4010, reconnect: 'resume', message: 'Service temporarily unavailable.' },
  protocol_error: { code: 4011, reconnect: 'no', message: 'Protocol violation.' },
  message_too_large: { code: 4012, reconnect: 'no', message: 'Message too large.' },
  rate_limited: { code: 4013, reconnect: 'resume', message: 'Too many messages.' },
  slow_consumer: { code: 4014, reconnect: 'resume', message: 'Client reads too slowly.' },
  timeout: { code: 4015, reconnect: 'resume', message: 'Connection timed out.' },
  too_many_attempts: { code: 4016, reconnect: 'resume', message: 'Too many joins or resumptions.' },
  moved: { code: 4017, reconnect: 'resume', message: 'Moved to another room.' },
} as const satisfies Record<string, { code: number; reconnect: 'no' | 'resume' | 'join'; message: string }>;

export type CloseReason = keyof typeof CLOSE_REASONS;

/** Codes with which the gateway refuses a request. The connection stays open. */
export const ERROR_CODES = {
  invalid_message: 'The message does not match its schema. `details` lists the failures.',
  invalid_sdp: 'The session description is invalid.',
  permission_denied: 'The participant lacks the required permission.',
  not_admitted: 'The participant waits in the lobby.',
  media_unavailable: 'No media server is available. Requests without media still work.',
  not_found: 'Track or participant not found.',
  too_many_tracks: 'More tracks than allowed.',
  track_refused: 'The client cannot receive the track.',
  room_encrypted: 'The room takes only tracks that are encrypted end to end, as VP8, H.264 or Opus.',
  conflict: 'The request conflicts with the state of the session.',
  payload_too_large: 'The data or metadata is too large.',
  rate_limited: 'Too many requests. Slow down.',
  unavailable: 'A dependency is unavailable. Try again.',
} as const;

export type ErrorCode = keyof typeof ERROR_CODES;
