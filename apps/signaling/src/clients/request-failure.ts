import { boundDetails, boundMessage, type ErrorDetail } from '@callplane/core';
import { ERROR_CODES, type ErrorCode, type ServerMessage } from '@callplane/protocol';
import type { Logger } from '@callplane/runtime';
import type { Client } from './client.js';

/** Refusals of one client that get a log line of their own. The rest is counted in the line of its end. */
const REFUSALS_LOGGED_MAX = 20;
const FAILURES_LOGGED_MAX = 5;

export class RequestFailure extends Error {
  constructor(
    readonly code: ErrorCode,
    message: string = ERROR_CODES[code],
    readonly details?: { path: string; message: string }[],
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'RequestFailure';
  }
}

/** Builds the answer to a refused request. It has at most 16 KiB, whatever the details hold. */
export function errorMessage(
  id: string | undefined,
  code: ErrorCode,
  message: string,
  details?: readonly ErrorDetail[],
): ServerMessage {
  return {
    type: 'error',
    ...(id === undefined ? {} : { replyTo: id }),
    code,
    message: boundMessage(message),
    ...(details === undefined ? {} : { details: boundDetails(details) }),
  };
}

export function logRefusal(
  logger: Logger,
  client: Client,
  refusal: {
    type: string;
    code: string;
    answer?: string;
    details?: readonly ErrorDetail[] | undefined;
    cause?: unknown;
  },
): void {
  const refused = (client.logFields['refused'] ??= {}) as Record<string, number>;
  refused[refusal.code] = (refused[refusal.code] ?? 0) + 1;
  if (Object.values(refused).reduce((sum, count) => sum + count, 0) > REFUSALS_LOGGED_MAX) return;
  const { cause, details = [], ...fields } = refusal;
  // Without paths, which may hold names that the client chose.
  const failures = [...new Set(details.map(({ message }) => boundMessage(message)))].slice(0, FAILURES_LOGGED_MAX);
  logger.info('request refused', {
    connectionId: client.id,
    sessionId: client.logFields['sessionId'],
    ...fields,
    ...(failures.length === 0 ? {} : { failures }),
    ...(cause === undefined ? {} : { error: cause }),
  });
}
