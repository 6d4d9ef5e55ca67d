import type { HeldSession, JoinInput, JoinOutcome, MarkedSession, ResumeOutcome } from '@callplane/db';
import { logSessionTransition, type Logger } from '@callplane/runtime';

/** Logs what a batch of joins has written, at level debug, under the names of the moves in specs/sessions.qnt. */
export function noteJoins(
  logger: Logger,
  roomId: string,
  inputs: readonly JoinInput[],
  outcomes: readonly JoinOutcome[],
  sinceMs: number,
): void {
  for (const [at, outcome] of outcomes.entries()) {
    if (outcome.outcome !== 'joined') continue;
    const { sessionId, connection, supersededSessionIds, state, maxParticipants } = outcome;
    logSessionTransition(logger, supersededSessionIds.length > 0 ? 'supersede' : 'join', () => ({
      row: roomId,
      participant: (inputs[at] as JoinInput).participantId,
      session: sessionId,
      connection,
      version: state.version,
      places: maxParticipants,
      tookMs: performance.now() - sinceMs,
    }));
  }
}

export function noteResumptions(logger: Logger, outcomes: readonly ResumeOutcome[], sinceMs: number): void {
  for (const outcome of outcomes) {
    if (outcome.outcome !== 'resumed') continue;
    const { roomId, participantId, connection, version, state } = outcome;
    logSessionTransition(logger, 'resume', () => ({
      row: roomId,
      participant: participantId,
      session: state.sessionId,
      connection,
      version,
      tookMs: performance.now() - sinceMs,
    }));
  }
}

export function noteDisconnections(logger: Logger, marked: readonly MarkedSession[], sinceMs: number): void {
  for (const { roomId, sessionId, connection, version } of marked) {
    logSessionTransition(logger, 'disconnect', () => ({
      row: roomId,
      session: sessionId,
      connection,
      version,
      tookMs: performance.now() - sinceMs,
    }));
  }
}

export function noteLeaves(
  logger: Logger,
  roomId: string,
  held: readonly HeldSession[],
  { ended, version }: { ended: ReadonlySet<string>; version: number | null },
  sinceMs: number,
): void {
  for (const { sessionId, connection } of held) {
    if (!ended.has(sessionId)) continue;
    logSessionTransition(logger, 'leave', () => ({
      row: roomId,
      session: sessionId,
      connection,
      version,
      tookMs: performance.now() - sinceMs,
    }));
  }
}
