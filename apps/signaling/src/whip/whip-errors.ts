import { PublicError, type ErrorCode } from '@callplane/core';
import { isDatabaseUnavailable } from '@callplane/db';
import type { ErrorCode as RequestCode } from '@callplane/protocol';
import { RequestFailure, type Ending } from '../clients/client.js';
import type { WhipAnswer } from './whip-client.js';

type Failed = Extract<WhipAnswer, { type: 'closing' | 'error' }>;

/** The codes for the ends of a client that say more than that the gateway cannot serve it at present. */
const CODE_OF_ENDING: Partial<Record<Ending, ErrorCode>> = {
  removed: 'PARTICIPANT_REMOVED',
  room_ended: 'ROOM_ENDED',
  superseded: 'SESSION_REPLACED',
  elsewhere: 'SESSION_REPLACED',
  token_expired: 'UNAUTHENTICATED',
  invalid_token: 'UNAUTHENTICATED',
  invalid_session: 'SESSION_NOT_FOUND',
  left: 'SESSION_NOT_FOUND',
  // An encoder cannot follow a move to another room.
  moved: 'SESSION_NOT_FOUND',
  capacity: 'ROOM_FULL',
  too_many_attempts: 'RATE_LIMITED',
};

const CODE_OF_REFUSAL: Partial<Record<RequestCode, ErrorCode>> = {
  invalid_sdp: 'VALIDATION_FAILED',
  permission_denied: 'PERMISSION_DENIED',
  // An encoder cannot wait in a lobby.
  not_admitted: 'PERMISSION_DENIED',
  room_encrypted: 'ROOM_ENCRYPTED',
  rate_limited: 'RATE_LIMITED',
};

const RETRY_AFTER_SECONDS = 1;
const DATABASE_RETRY_AFTER_SECONDS = 2;

const MESSAGES: Partial<Record<ErrorCode, string>> = {
  UNAUTHENTICATED: 'Send a valid participant token as "Authorization: Bearer <TOKEN>".',
  SESSION_NOT_FOUND: 'The session does not exist, has ended, or belongs to another token.',
  ROOM_ENCRYPTED: 'The room is encrypted end to end. An encoder that publishes by WHIP cannot encrypt its frames.',
  UNAVAILABLE: 'The gateway or its media server cannot serve this request at present. Try again shortly.',
};

export function whipError(code: ErrorCode, retryAfterSeconds: number | null = null, cause?: unknown): PublicError {
  const message = MESSAGES[code];
  const waits = retryAfterSeconds ?? (code === 'UNAVAILABLE' || code === 'RATE_LIMITED' ? RETRY_AFTER_SECONDS : null);
  return new PublicError(code, {
    ...(message === undefined ? {} : { message }),
    headers: {
      ...(waits === null ? {} : { 'retry-after': String(waits) }),
      ...(code === 'UNAUTHENTICATED' ? { 'www-authenticate': 'Bearer' } : {}),
    },
    ...(cause === undefined ? {} : { cause }),
  });
}

/** The error for an answer of the gateway that is not the wanted one. */
export function errorOfAnswer(answer: Failed): PublicError {
  if (answer.type === 'closing') {
    return whipError(CODE_OF_ENDING[answer.reason] ?? 'UNAVAILABLE', answer.retryAfterSeconds ?? null);
  }
  return errorOfRefusal(new RequestFailure(answer.code, answer.message, answer.details));
}

/** The error for anything that a request throws. */
export function toPublicError(error: unknown): PublicError {
  if (error instanceof PublicError) return error;
  if (error instanceof RequestFailure) return errorOfRefusal(error);
  if (isDatabaseUnavailable(error)) return whipError('UNAVAILABLE', DATABASE_RETRY_AFTER_SECONDS, error);
  return new PublicError('INTERNAL', { cause: error });
}

function errorOfRefusal({ code, message, details = [], cause }: RequestFailure): PublicError {
  const known = CODE_OF_REFUSAL[code];
  if (known !== 'VALIDATION_FAILED' && known !== 'PERMISSION_DENIED') {
    return whipError(known ?? 'UNAVAILABLE', null, cause ?? message);
  }
  // The client has declared no tracks: the gateway did.
  const shown = details.map((detail) => ({ path: 'body', message: detail.message }));
  return new PublicError(known, { message, ...(shown.length === 0 ? {} : { details: shown }) });
}
