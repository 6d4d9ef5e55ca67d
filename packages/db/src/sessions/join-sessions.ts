import {
  afterJoin,
  decideJoins,
  newId,
  refusedAtOnce,
  type JoinCandidate,
  type PaceTimes,
  type RecordingInput,
  type RoomState,
} from '@callplane/core';
import type { Database, TypedSql } from '../client/database.js';
import type { DueEndpoint } from '../webhooks/due-endpoints.js';
import { recordFromStart } from '../recordings/recordings.repository.js';
import { admitJoins, lockParticipants, lockRoom, type Joining, type RoomToJoin } from './join-locks.js';
import { writeJoins, type AcceptedJoin } from './join-writes.js';
import type { RoomChanges } from './room-changes.js';
import { endTracks } from './session.sql.js';
import type { JoinInput, SessionState } from './session.js';

/** The outcome of one join of a batch. Every outcome except `joined` opens no session. */
export type JoinOutcome =
  | {
      outcome: 'joined';
      sessionId: string;
      connection: number;
      /** The session as the others see it, with the room's version after the join. */
      state: SessionState;
      /** All that the batch has changed; null if that has to be read. */
      changes: RoomChanges | null;
      /** Deliveries to wake. The first join of a batch has all of them. */
      deliveries: DueEndpoint[];
    }
  | { outcome: 'room_ended' | 'removed' | 'token_revoked' | 'capacity' | 'not_found' }
  | { outcome: 'too_many'; waitMs: number }
  | { outcome: 'overtaken' }
  | { outcome: 'abandoned' };

export interface JoinSettings {
  pace: PaceTimes;
  /** The roster becomes paged when the room has more live sessions than this. */
  rosterFullMax: number;
}

type AdmittedJoin = JoinInput & { joinNumber: number };

interface Batch extends Pick<JoinSettings, 'rosterFullMax'> {
  now: Date;
  /** The media server for the room if it has none yet. */
  mediaNodeId: string | null;
}

/** The outcomes by participant id. One that is missing is `abandoned`. */
type Outcomes = Map<string, JoinOutcome>;

/** Thrown to roll a batch back after it has written, because these clients have gone. */
class AbandonedJoins extends Error {
  constructor(readonly inputs: readonly JoinInput[]) {
    super('clients have gone');
  }
}

/** The wait that a join is told at least, in milliseconds: another join may have taken the token since. */
const TOO_MANY_WAIT_MS_MIN = 1;

/**
 * Lets participants join a room, and decides each join in the order of the inputs. The first statement numbers the
 * joins and reads the facts that decide them, without locks. The second one writes them if nothing has changed
 * meanwhile. Otherwise, and if a join ends another session or starts a recording, one transaction locks, decides and
 * writes: batches of the same room run one after another on its row lock. So concurrent joins cannot exceed its capacity.
 *
 * Of two joins of one participant, the one with the higher number opens the session, whichever is written first. So a
 * gateway that stood still cannot end the session that the client has opened elsewhere meanwhile.
 * @param inputs joins of different participants.
 * @throws after an error, which may have one of the joins as its cause. Nothing is written then; if PostgreSQL is
 *   unavailable, that is unknown.
 */
export async function joinSessions(
  database: Database,
  roomId: string,
  inputs: readonly JoinInput[],
  now: Date,
  settings: JoinSettings,
): Promise<JoinOutcome[]> {
  const { waitMsOf, ...joining } = await admitJoins(database.sql, roomId, inputs, settings.pace);
  const admitted = inputs.flatMap((input): AdmittedJoin[] => {
    const joinNumber = joining.people.get(input.participantId)?.latestJoin;
    return joinNumber === undefined ? [] : [{ ...input, joinNumber }];
  });
  // Awaited outside of transactions: choosing a media server may take another connection.
  const chosen = await Promise.all(admitted.map(({ mediaNodeId }) => Promise.resolve(mediaNodeId)));
  const batch = { ...settings, now, mediaNodeId: chosen.find((nodeId) => nodeId !== null) ?? null };
  const isSuperseding = admitted.some(({ participantId }) => joining.room?.liveSessionOf.has(participantId));
  const isRecorded = joining.room !== null && isRecordedFromStart(joining.room.room);
  const joined = isSuperseding || isRecorded ? null : await join(database.sql, joining, admitted, 'unchanged', batch);
  const outcomes = joined?.outcomes ?? (await joinTogether(database, roomId, admitted, batch));
  return inputs.map(({ participantId }) => {
    const waitMs = waitMsOf.get(participantId);
    if (waitMs !== undefined) return { outcome: 'too_many', waitMs: Math.max(waitMs, TOO_MANY_WAIT_MS_MIN) };
    if (!joining.people.has(participantId)) return { outcome: 'not_found' };
    return outcomes.get(participantId) ?? { outcome: 'abandoned' };
  });
}

/** Repeats the transaction without the clients that have gone while it ran. */
async function joinTogether(
  database: Database,
  roomId: string,
  inputs: readonly AdmittedJoin[],
  batch: Batch,
): Promise<Outcomes> {
  let staying = inputs;
  for (;;) {
    try {
      return await database.transaction((sql) => joinLocked(sql, roomId, staying, batch));
    } catch (error) {
      if (!(error instanceof AbandonedJoins)) throw error;
      staying = staying.filter((input) => !error.inputs.includes(input));
    }
  }
}

/** Joins of participants that the transaction has made, in a transaction that has locked the room. */
export async function joinMade(
  sql: TypedSql,
  input: JoinInput & { mediaNodeId: string | null },
  rosterFullMax: number,
  now: Date,
): Promise<JoinOutcome> {
  const { roomId, participantId, mediaNodeId } = input;
  const outcomes = await joinLocked(sql, roomId, [{ ...input, joinNumber: 0 }], { now, mediaNodeId, rosterFullMax });
  return outcomes.get(participantId) ?? { outcome: 'abandoned' };
}

async function joinLocked(
  sql: TypedSql,
  roomId: string,
  inputs: readonly AdmittedJoin[],
  batch: Batch,
): Promise<Outcomes> {
  const people = await lockParticipants(sql, inputs);
  const hopeful = inputs.filter((input) => refusedAtOnce(candidateOf(input, { people, room: null })) === null);
  const room = hopeful.length === 0 ? null : await lockRoom(sql, roomId, hopeful);
  const joined = await join(sql, { people, room }, inputs, 'held', batch);
  if (joined === null) throw new Error('the joins were not written under their locks');
  const left = joined.accepted.filter((input) => input.isWaiting?.() === false);
  if (left.length > 0) throw new AbandonedJoins([...left, ...joined.gone]);
  return joined.outcomes;
}

interface Joined {
  outcomes: Outcomes;
  accepted: AdmittedJoin[];
  gone: AdmittedJoin[];
}

/** @returns null if nothing was written, because the facts have changed. */
async function join(
  sql: TypedSql,
  joining: Joining,
  inputs: readonly AdmittedJoin[],
  lock: 'held' | 'unchanged',
  batch: Batch,
): Promise<Joined | null> {
  const { room } = joining;
  // Asked late: locks may have taken long.
  const gone = inputs.filter(
    (input) => refusedAtOnce(candidateOf(input, joining)) === null && input.isWaiting?.() === false,
  );
  const staying = inputs.filter((input) => !gone.includes(input));
  const { decisions, rosterPaged } = decideJoins(
    room === null ? NO_ROOM : { ...room.room, ...room },
    staying.map((input) => candidateOf(input, joining)),
    batch.rosterFullMax,
  );
  const accepted = staying.filter((_, at) => decisions[at] === 'join');
  const outcomes: Outcomes = new Map();
  staying.forEach(({ participantId }, at) => {
    const outcome = decisions[at];
    if (outcome !== undefined && outcome !== 'join') outcomes.set(participantId, { outcome });
  });
  if (room === null || accepted.length === 0) return { outcomes, accepted, gone };
  const joins = await acceptedJoins(sql, joining, room, accepted, batch.now);
  const written = await writeJoins(sql, room, joins, { ...batch, rosterPaged }, lock, batch.now);
  if (written === null) return null;
  const first = joins.find(({ state }) => !state.waiting)?.input;
  const recorded =
    first !== undefined && isRecordedFromStart(room.room)
      ? await recordFromStart(sql, first.tenant, afterJoin(room.room, batch.now))
      : null;
  joins.forEach(({ input, state }, at) => {
    const { sessionId, connection } = state;
    // The start of a recording is a change of its own.
    const changes = recorded === null ? written.changes : null;
    const due = at === 0 ? [...written.deliveries, ...(recorded ?? [])] : [];
    outcomes.set(input.participantId, { outcome: 'joined', sessionId, connection, state, changes, deliveries: due });
  });
  return { outcomes, accepted, gone };
}

export function isRecordedFromStart(room: RoomState): room is RoomState & { record: RecordingInput } {
  return room.status === 'created' && room.record !== null;
}

/** Stands for the room if every join is refused before the room is locked. */
const NO_ROOM = {
  status: 'ended',
  maxParticipants: 0,
  liveSessions: 0,
  waitingSessions: 0,
  rosterPaged: false,
} as const;

function candidateOf({ participantId, joinNumber }: AdmittedJoin, { people, room }: Joining): JoinCandidate {
  const person = people.get(participantId);
  if (person === undefined || person.tokenRevoked === null) return { participant: null, joinNumber };
  const { removed, tokenRevoked, latestJoin, waiting } = person;
  const hasLiveSession = room?.liveSessionOf.has(participantId) ?? false;
  return { participant: { removed, tokenRevoked, latestJoin, hasLiveSession, waiting }, joinNumber };
}

async function acceptedJoins(
  sql: TypedSql,
  { people }: Joining,
  { liveSessionOf, version }: RoomToJoin,
  accepted: readonly AdmittedJoin[],
  now: Date,
): Promise<AcceptedJoin[]> {
  const superseded = accepted.flatMap(({ participantId }) => liveSessionOf.get(participantId) ?? []);
  const tracks = await endTracks(sql, superseded, now);
  return accepted.map((input): AcceptedJoin => {
    const sessionId = liveSessionOf.get(input.participantId);
    const person = people.get(input.participantId);
    if (person === undefined) throw new Error(`${input.participantId} was not read`);
    const { participant, waiting } = person;
    const state: SessionState = {
      sessionId: newId('session'),
      version: version + 1,
      participant: { ...participant, connectedAt: participant.connectedAt ?? now, leftAt: null },
      startedAt: now,
      permissions: person.permissions.length > 0 ? person.permissions : input.permissions,
      instanceId: input.instanceId,
      connection: 1,
      disconnectedAt: null,
      waiting,
      tracks: [],
    };
    const ends = sessionId === undefined ? null : { sessionId, tracks: tracks.get(sessionId) ?? [] };
    return { input, person, state, superseded: ends };
  });
}
