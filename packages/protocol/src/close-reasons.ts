/**
 * Every way in which the gateway ends a connection. A `closing` message with the reason goes before the WebSocket close
 * frame, whose code is `code` and whose reason text is the key.
 * `reconnect`: what a client should do: `no` (the session is over, or would be refused again), `resume` (the session
 * lives on for the grace period: connect again, anywhere, with `resume`; whoever has no session yet, with `join`), `join`
 * (try the token again later).
 */
export const CLOSE_REASONS = {
  left: { code: 4000, reconnect: 'no', message: 'You left.' },
  removed: { code: 4001, reconnect: 'no', message: 'You were removed from the room.' },
  room_ended: { code: 4002, reconnect: 'no', message: 'The room has ended.' },
  superseded: { code: 4003, reconnect: 'no', message: 'The participant has connected from elsewhere.' },
  token_expired: { code: 4004, reconnect: 'no', message: 'The token has expired; ask your backend for a new one.' },
  invalid_token: { code: 4005, reconnect: 'no', message: 'The token is not valid here.' },
  invalid_session: {
    code: 4006,
    reconnect: 'join',
    message: 'The session cannot be resumed: it has ended or is unknown.',
  },
  capacity: { code: 4007, reconnect: 'join', message: 'The room is full.' },
  media_unavailable: { code: 4008, reconnect: 'join', message: 'No media server can be reached.' },
  drain: { code: 4009, reconnect: 'resume', message: 'This instance stops; connect to another one.' },
  unavailable: { code: 4010, reconnect: 'resume', message: 'A dependency does not answer.' },
  protocol_error: { code: 4011, reconnect: 'no', message: 'The connection does not keep to the protocol.' },
  message_too_large: { code: 4012, reconnect: 'no', message: 'A frame is larger than the limit.' },
  rate_limited: { code: 4013, reconnect: 'resume', message: 'Too many messages.' },
  slow_consumer: { code: 4014, reconnect: 'resume', message: 'The connection does not keep up with what it is sent.' },
  timeout: { code: 4015, reconnect: 'resume', message: 'Nothing was heard for too long.' },
} as const satisfies Record<string, { code: number; reconnect: 'no' | 'resume' | 'join'; message: string }>;

export type CloseReason = keyof typeof CLOSE_REASONS;
