import { decideJoins, refusedAtOnce, type JoinCandidate, type JoinDecision } from '@callplane/core';
import type { Database, TypedSql } from '../client/database.js';
import { isDatabaseUnavailable } from '../client/unavailable.js';
import { endTracks } from './session-ends.js';
import {
  lockParticipants,
  lockRoom,
  readJoining,
  type Joining,
  type JoiningPerson,
  type RoomToJoin,
} from './join-locks.js';
import { elementAt, writeJoins, type AcceptedJoin } from './join-writes.js';
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
 * Lets participants join a room, and decides each join in the order of the inputs. Reads without locks at first, and
 * writes in one statement if nothing has changed meanwhile. Otherwise, and if a join ends another session, one
 * transaction locks, decides and writes: batches of the same room run one after another on its row lock. So concurrent
 * joins cannot exceed its capacity.
 *
 * A join that fails does not fail the others: after an error, each join is tried alone once.
 * @param inputs joins of different participants.
 * @returns the outcomes in the order of the inputs.
 * @throws if PostgreSQL is unavailable; an outcome is unknown then.
 */
export async function joinSessions(
  database: Database,
  roomId: string,
  inputs: readonly JoinInput[],
  now: Date,
  settings: JoinSettings = {},
): Promise<JoinOutcome[]> {
  try {
    return (
      (await joinUnlocked(database.sql, roomId, inputs, now, settings)) ??
      (await joinTogether(database, roomId, inputs, now, settings))
    );
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
      const outcomes = await database.transaction((sql) => joinLocked(sql, roomId, staying, now, settings));
      const byInput = new Map(staying.map((input, at) => [input, elementAt(outcomes, at)]));
      return inputs.map((input) => byInput.get(input) ?? { outcome: 'abandoned' });
    } catch (error) {
      if (!(error instanceof AbandonedJoins)) throw error;
      for (const input of error.inputs) gone.add(input);
    }
  }
}

/** @returns null if it wrote nothing, because the joins need locks. */
async function joinUnlocked(
  sql: TypedSql,
  roomId: string,
  inputs: readonly JoinInput[],
  now: Date,
  settings: JoinSettings,
): Promise<JoinOutcome[] | null> {
  const joining = await readJoining(sql, roomId, inputs);
  const plan = planJoins(joining, inputs, settings);
  if (plan.accepted.some((input) => joining.room?.liveSessionOf.has(input.participantId))) return null;
  const joined = await write(sql, joining, plan, 'unchanged', now);
  return joined === null ? null : inputs.map((input) => joined.get(input) ?? refusalOf(plan.decisionOf.get(input)));
}

async function joinLocked(
  sql: TypedSql,
  roomId: string,
  inputs: readonly JoinInput[],
  now: Date,
  settings: JoinSettings,
): Promise<JoinOutcome[]> {
  const people = await lockParticipants(sql, roomId, inputs);
  const hopeful = inputs.filter((input) => refusedAtOnce(candidateOf(input, { people, room: null })) === null);
  const joining = { people, room: hopeful.length === 0 ? null : await lockRoom(sql, roomId, hopeful) };
  // The locks may have taken long.
  const plan = planJoins(joining, inputs, settings);
  const joined = await write(sql, joining, plan, 'held', now);
  if (joined === null) throw new Error('the joins were not written under their locks');
  const left = plan.accepted.filter((input) => input.isWanted?.() === false);
  if (left.length > 0) throw new AbandonedJoins(new Set([...left, ...plan.gone]));
  return inputs.map((input) => joined.get(input) ?? refusalOf(plan.decisionOf.get(input)));
}

interface Plan {
  /** Joins whose clients have gone. The other joins have a decision. */
  gone: ReadonlySet<JoinInput>;
  decisionOf: ReadonlyMap<JoinInput, JoinDecision>;
  accepted: JoinInput[];
  rosterPaged: boolean;
}

function planJoins(joining: Joining, inputs: readonly JoinInput[], { rosterFullMax = Infinity }: JoinSettings): Plan {
  const { room } = joining;
  const gone = new Set(
    inputs.filter((input) => refusedAtOnce(candidateOf(input, joining)) === null && input.isWanted?.() === false),
  );
  const staying = inputs.filter((input) => !gone.has(input));
  const { decisions, rosterPaged } = decideJoins(
    { ...(room?.room ?? NO_ROOM), liveSessions: room?.liveSessions ?? 0, rosterPaged: room?.rosterPaged ?? false },
    staying.map((input) => candidateOf(input, joining)),
    rosterFullMax,
  );
  const decisionOf = new Map(staying.map((input, at) => [input, elementAt(decisions, at)]));
  return { gone, decisionOf, accepted: staying.filter((input) => decisionOf.get(input) === 'join'), rosterPaged };
}

/** Stands for the room if every join is refused before the room is locked. */
const NO_ROOM = { status: 'ended', maxParticipants: 0 } as const;

/** @returns undefined if the input's environment has no such participant. */
function personOf({ participantId, tenant }: JoinInput, { people }: Joining): JoiningPerson | undefined {
  const person = people.get(participantId);
  return person?.environmentId === tenant.environmentId ? person : undefined;
}

function candidateOf(input: JoinInput, joining: Joining): JoinCandidate {
  const { joinNumber } = input;
  const person = personOf(input, joining);
  if (person === undefined || person.tokenRevoked === null) return { participant: null, joinNumber };
  const { removed, tokenRevoked, latestJoin, participant } = person;
  const hasLiveSession = joining.room?.liveSessionOf.has(participant.id) ?? false;
  return { participant: { removed, tokenRevoked, latestJoin, hasLiveSession }, joinNumber };
}

/** @param decision undefined if the client has gone. */
function refusalOf(decision: JoinDecision | undefined): JoinOutcome {
  if (decision === 'join') throw new Error('the join was not written');
  return { outcome: decision ?? 'abandoned' };
}

/** @returns the outcomes of the accepted joins; null if nothing was written. */
async function write(
  sql: TypedSql,
  joining: Joining,
  { accepted, rosterPaged }: Plan,
  lock: 'held' | 'unchanged',
  now: Date,
): Promise<Map<JoinInput, JoinOutcome> | null> {
  const { room } = joining;
  if (room === null || accepted.length === 0) return new Map();
  const joins = await acceptedJoins(sql, joining, room, accepted, now);
  const written = await writeJoins(sql, room, joins, rosterPaged, lock, now);
  if (written === null) return null;
  return new Map(
    joins.map(({ input }, at) => {
      const state = elementAt(written.states, at);
      const { sessionId, connection } = state;
      const deliveries = at === 0 ? written.deliveries : [];
      return [input, { outcome: 'joined', sessionId, connection, state, deliveries }];
    }),
  );
}

/** Ends the tracks of the sessions that the joins supersede. */
async function acceptedJoins(
  sql: TypedSql,
  joining: Joining,
  { liveSessionOf }: RoomToJoin,
  accepted: readonly JoinInput[],
  now: Date,
): Promise<AcceptedJoin[]> {
  const superseded = accepted.flatMap(({ participantId }) => liveSessionOf.get(participantId) ?? []);
  const tracks = await endTracks(sql, superseded, now);
  return accepted.map((input): AcceptedJoin => {
    const sessionId = liveSessionOf.get(input.participantId);
    const person = personOf(input, joining);
    if (person === undefined) throw new Error(`${input.participantId} was not read`);
    return {
      input,
      person,
      permissions: person.permissions.length > 0 ? person.permissions : input.permissions,
      superseded: sessionId === undefined ? null : { sessionId, tracks: tracks.get(sessionId) ?? [] },
    };
  });
}
