import { decideJoins, refusedAtOnce, type JoinCandidate, type JoinDecision } from '@callplane/core';
import type { Database, TypedSql } from '../client/database.js';
import { isDatabaseUnavailable } from '../client/unavailable.js';
import { endTracks } from './session-ends.js';
import { elementAt } from './element.js';
import { lockParticipants, lockRoom, type JoiningPerson, type LockedRoom } from './join-locks.js';
import { writeJoins, type AcceptedJoin } from './join-writes.js';
import { inRounds } from './rounds.js';
import type { JoinInput, JoinOutcome } from './session.js';

export interface JoinSettings {
  /** The roster becomes paged when the room has more live sessions than this. Default: never. */
  rosterFullMax?: number;
}

/** Thrown to roll a batch back after it has written, because these clients have gone. */
class AbandonedJoins extends Error {
  readonly inputs: ReadonlySet<JoinInput>;

  constructor(inputs: ReadonlySet<JoinInput>) {
    super('clients have gone');
    this.inputs = inputs;
  }
}

/**
 * Lets participants join a room, in one transaction that decides each join in the order of the inputs. Batches of the
 * same room run one after another on its row lock, so that concurrent joins cannot exceed its capacity.
 *
 * A join that fails does not fail the others: after an error, each join is tried alone once.
 * @returns the outcomes in the order of the inputs.
 * @throws if PostgreSQL is unavailable; an outcome is unknown then.
 */
export function joinSessions(
  database: Database,
  roomId: string,
  inputs: readonly JoinInput[],
  now: Date,
  settings: JoinSettings = {},
): Promise<JoinOutcome[]> {
  return inRounds(
    inputs,
    ({ participantId }) => participantId,
    (round) => joinRound(database, roomId, round, now, settings),
  );
}

/** @param inputs joins of different participants. */
async function joinRound(
  database: Database,
  roomId: string,
  inputs: readonly JoinInput[],
  now: Date,
  settings: JoinSettings,
): Promise<JoinOutcome[]> {
  try {
    return await joinTogether(database, roomId, inputs, now, settings);
  } catch (error) {
    if (isDatabaseUnavailable(error)) throw error;
    if (inputs.length === 1) return [{ outcome: 'failed', error }];
  }
  const outcomes: JoinOutcome[] = [];
  for (const input of inputs) {
    const alone = await joinTogether(database, roomId, [input], now, settings).catch(
      (error: unknown): JoinOutcome[] => [{ outcome: 'failed', error }],
    );
    outcomes.push(...alone);
  }
  return outcomes;
}

/** Repeats the transaction without the clients that have gone while it ran. */
async function joinTogether(
  database: Database,
  roomId: string,
  inputs: readonly JoinInput[],
  now: Date,
  settings: JoinSettings,
): Promise<JoinOutcome[]> {
  const gone = new Set<JoinInput>();
  for (;;) {
    const staying = inputs.filter((input) => !gone.has(input));
    try {
      const outcomes = await database.sqlTransaction((sql) => joinOnce(sql, roomId, staying, now, settings));
      const byInput = new Map(staying.map((input, at) => [input, elementAt(outcomes, at)]));
      return inputs.map((input) => byInput.get(input) ?? { outcome: 'abandoned' });
    } catch (error) {
      if (!(error instanceof AbandonedJoins)) throw error;
      for (const input of error.inputs) gone.add(input);
    }
  }
}

async function joinOnce(
  sql: TypedSql,
  roomId: string,
  inputs: readonly JoinInput[],
  now: Date,
  { rosterFullMax = Infinity }: JoinSettings,
): Promise<JoinOutcome[]> {
  const people = await lockParticipants(sql, roomId, inputs);
  const personOf = (input: JoinInput): JoiningPerson | undefined => {
    const person = people.get(input.participantId);
    return person?.environmentId === input.tenant.environmentId ? person : undefined;
  };
  const hopeful = inputs.filter((input) => refusedAtOnce(candidateOf(input, personOf(input), null)) === null);
  const locked = hopeful.length === 0 ? null : await lockRoom(sql, roomId, hopeful);
  // The locks may have taken long.
  const gone = new Set(hopeful.filter((input) => input.isWanted?.() === false));
  const staying = inputs.filter((input) => !gone.has(input));
  const { decisions, rosterPaged } = decideJoins(
    {
      ...(locked?.room ?? NO_ROOM),
      liveSessions: locked?.liveSessions ?? 0,
      rosterPaged: locked?.rosterPaged ?? false,
    },
    staying.map((input) => candidateOf(input, personOf(input), locked)),
    rosterFullMax,
  );
  const decisionOf = new Map(staying.map((input, at) => [input, elementAt(decisions, at)]));
  const accepted = staying.filter((input) => decisionOf.get(input) === 'join');
  const joined =
    locked === null || accepted.length === 0
      ? new Map<JoinInput, JoinOutcome>()
      : await write(sql, locked, accepted, personOf, rosterPaged, now);
  const left = accepted.filter((input) => input.isWanted?.() === false);
  if (left.length > 0) throw new AbandonedJoins(new Set([...left, ...gone]));
  return inputs.map((input) => joined.get(input) ?? refusalOf(decisionOf.get(input)));
}

/** Stands for the room if every join is refused before the room is locked. */
const NO_ROOM = { status: 'ended', maxParticipants: 0 } as const;

function candidateOf(
  { joinNumber, protocol = 2 }: JoinInput,
  person: JoiningPerson | undefined,
  locked: LockedRoom | null,
): JoinCandidate {
  if (person === undefined || person.tokenRevoked === null) return { participant: null, joinNumber, canPage: true };
  const { removed, tokenRevoked, latestJoin, participant } = person;
  const hasLiveSession = locked?.liveSessionOf.has(participant.id) ?? false;
  return { participant: { removed, tokenRevoked, latestJoin, hasLiveSession }, joinNumber, canPage: protocol >= 2 };
}

/** @param decision undefined if the client has gone. */
function refusalOf(decision: JoinDecision | undefined): JoinOutcome {
  if (decision === 'join') throw new Error('the join was not written');
  return { outcome: decision ?? 'abandoned' };
}

async function write(
  sql: TypedSql,
  locked: LockedRoom,
  accepted: readonly JoinInput[],
  personOf: (input: JoinInput) => JoiningPerson | undefined,
  rosterPaged: boolean,
  now: Date,
): Promise<Map<JoinInput, JoinOutcome>> {
  const supersededOf = (input: JoinInput): string | null => locked.liveSessionOf.get(input.participantId) ?? null;
  const tracks = await endTracks(
    sql,
    accepted.map(supersededOf).filter((id) => id !== null),
    now,
  );
  const joins = accepted.map((input): AcceptedJoin => {
    const sessionId = supersededOf(input);
    const person = personOf(input);
    if (person === undefined) throw new Error(`${input.participantId} is not locked`);
    return {
      input,
      participant: person.participant,
      permissions: person.permissions.length > 0 ? person.permissions : input.permissions,
      superseded: sessionId === null ? null : { sessionId, tracks: tracks.get(sessionId) ?? [] },
    };
  });
  const { states, deliveries } = await writeJoins(sql, locked, joins, rosterPaged, now);
  return new Map(
    joins.map(({ input, superseded }, at) => {
      const state = elementAt(states, at);
      const { sessionId, connection } = state;
      const supersededSessionIds = superseded === null ? [] : [superseded.sessionId];
      const own = at === 0 ? deliveries : [];
      return [input, { outcome: 'joined', sessionId, connection, state, supersededSessionIds, deliveries: own }];
    }),
  );
}
