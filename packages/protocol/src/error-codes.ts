/** Codes with which the gateway refuses a request. The connection stays open. */
export const ERROR_CODES = {
  invalid_message: 'The message does not match its schema. `details` lists the failures.',
  invalid_sdp: 'The session description is invalid.',
  permission_denied: 'The participant lacks the required permission.',
  media_unavailable: 'No media server is available. Requests without media still work.',
  not_found: 'Track or participant not found.',
  too_many_tracks: 'More tracks than allowed.',
  track_refused: 'The client cannot receive the track.',
  conflict: 'The request conflicts with the state of the session.',
  payload_too_large: 'The data or metadata is too large.',
  rate_limited: 'Too many requests. Slow down.',
  unavailable: 'A dependency is unavailable. Try again.',
} as const;

export type ErrorCode = keyof typeof ERROR_CODES;
