import { boundMessage, type ErrorDetail } from '@callplane/core';
import type { Logger } from '@callplane/runtime';
import type { Ending } from '../metrics.js';
import type { Connection } from './connection.js';

/** Refusals of one connection that get a log line of their own. The rest is counted in the line of its end. */
const REFUSALS_LOGGED_MAX = 20;
/** Details of a refusal that its log line names. */
const FAILURES_LOGGED_MAX = 5;

/** Logs how a connection ended, and why. Waits for the socket, whose close code is part of the line. */
export async function logEnd(logger: Logger, connection: Connection, ending: Ending): Promise<void> {
  await connection.closed();
  // A client beyond a limit reconnects often. The limit's own log line, whose rate is bounded, covers it.
  if (ending === 'too_many_attempts') return;
  logger.info('connection', {
    connectionId: connection.id,
    reason: ending,
    ...connection.logFields,
    durationMs: Math.round(performance.now() - connection.openedAtMs),
    ...connection.traffic,
  });
}

/** Logs an error that a request was answered with. */
export function logRefusal(
  logger: Logger,
  connection: Connection,
  refusal: {
    type: string;
    code: string;
    answer?: string;
    details?: readonly ErrorDetail[] | undefined;
    cause?: unknown;
  },
): void {
  const refused = (connection.logFields['refused'] ??= {}) as Record<string, number>;
  refused[refusal.code] = (refused[refusal.code] ?? 0) + 1;
  connection.refusalsLogged += 1;
  if (connection.refusalsLogged > REFUSALS_LOGGED_MAX) return;
  const { cause, details = [], ...fields } = refusal;
  // Without paths, which may hold names that the client chose.
  const failures = [...new Set(details.map(({ message }) => boundMessage(message)))].slice(0, FAILURES_LOGGED_MAX);
  logger.info('request refused', {
    connectionId: connection.id,
    sessionId: connection.logFields['sessionId'],
    ...fields,
    ...(failures.length === 0 ? {} : { failures }),
    ...(cause === undefined ? {} : { error: cause }),
  });
}
