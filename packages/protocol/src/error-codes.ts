/** Why a request was refused; the connection stays open. */
export const ERROR_CODES = {
  invalid_message: 'The message does not match its schema; `details` says where.',
  invalid_sdp: 'The session description cannot be used.',
  permission_denied: 'The token does not permit this.',
  media_unavailable: 'No media server can be reached at present; everything else works.',
  not_found: 'There is no such track or participant.',
  conflict: 'Out of order: what this refers to has been replaced or is under way.',
  payload_too_large: 'Data or metadata is too large.',
  rate_limited: 'Too many of these; slow down.',
  unavailable: 'A dependency does not answer; try again.',
} as const;

export type ErrorCode = keyof typeof ERROR_CODES;
