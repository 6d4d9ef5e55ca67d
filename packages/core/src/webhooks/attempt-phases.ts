import type { DiagnosedAttempt } from './diagnosis.js';

/** `earlier_addresses`: connections to addresses of the same host that failed before the one of the attempt. */
export const ATTEMPT_PHASES = ['dns', 'earlier_addresses', 'connect', 'tls', 'first_byte', 'body'] as const;
type AttemptPhaseName = (typeof ATTEMPT_PHASES)[number];

/** A part of an attempt's time. Phases follow one another without gaps. */
export interface AttemptPhase {
  phase: AttemptPhaseName;
  /** From the beginning of the attempt. */
  startMs: number;
  durationMs: number;
  /** Whether the attempt ended in this phase without an answer. */
  failed: boolean;
}

export interface EarlierAddress {
  address: string;
  errorCode: string | null;
  durationMs: number;
}

export interface TimedAttempt extends DiagnosedAttempt {
  durationMs: number;
  dnsMs: number | null;
  connectMs: number | null;
  tlsMs: number | null;
  firstByteMs: number | null;
  earlierAddresses: readonly EarlierAddress[];
}

/**
 * Lays the measured times of an attempt one after another. A phase that did not happen is left out, such as the
 * connection on a connection that was kept alive. The time that no measurement covers belongs to the last phase: to the
 * phase that failed, or to the body of the answer.
 */
export function attemptPhases(attempt: TimedAttempt): AttemptPhase[] {
  const measured: [AttemptPhaseName, number | null][] = [
    ['dns', attempt.dnsMs],
    ['earlier_addresses', attempt.earlierAddresses.reduce((sum, { durationMs }) => sum + durationMs, 0) || null],
    ['connect', attempt.connectMs],
    ['tls', attempt.tlsMs],
    ['first_byte', attempt.firstByteMs],
  ];
  const phases: AttemptPhase[] = [];
  let endMs = 0;
  const add = (phase: AttemptPhaseName, durationMs: number): void => {
    // Each time is rounded for itself, so their sum may exceed the whole.
    const within = Math.min(durationMs, attempt.durationMs - endMs);
    phases.push({ phase, startMs: endMs, durationMs: within, failed: false });
    endMs += within;
  };
  for (const [phase, durationMs] of measured) if (durationMs !== null) add(phase, durationMs);
  const last = lastPhase(attempt);
  if (last === null) return phases;
  const restMs = attempt.durationMs - endMs;
  const previous = phases.at(-1);
  if (previous?.phase === last) previous.durationMs += restMs;
  else if (last !== 'body' || restMs > 0) add(last, restMs);
  const ended = phases.at(-1);
  if (ended !== undefined && last !== 'body') ended.failed = true;
  return phases;
}

/** The phase in which the attempt ended; null if no request was made. */
function lastPhase({ outcome, errorCode, statusCode }: TimedAttempt): AttemptPhaseName | null {
  if (statusCode !== null) return 'body';
  switch (outcome) {
    case 'blocked':
      return null;
    case 'dns':
    case 'connect':
    case 'tls':
      return outcome;
    case 'timeout':
      return errorCode === 'CONNECT_TIMEOUT' ? 'connect' : errorCode === 'TLS_TIMEOUT' ? 'tls' : 'first_byte';
    default:
      return 'first_byte';
  }
}
