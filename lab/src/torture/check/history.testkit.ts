import type {
  DeliveryLine,
  FrameLine,
  JsonObject,
  MarkLine,
  MediaLine,
  NemesisLine,
  RequestLine,
  RunLine,
} from '../history.js';
import type { History } from './facts.js';

const wall = '2026-01-01T00:00:00.000Z';

/** The time of the wall clock at a time of the history. */
const wallAt = (atMs: number): string => new Date(Date.parse(wall) + atMs).toISOString();

const run: RunLine = {
  n: 0,
  wall,
  atMs: 0,
  seed: 1,
  minutes: 1,
  baseUrl: 'http://127.0.0.1',
  hasNemesis: true,
  tenants: [
    { name: 'a', projectId: 'proj_a', environmentId: 'env_a' },
    { name: 'b', projectId: 'proj_b', environmentId: 'env_b' },
  ],
  settings: { leaseMs: 6000 },
};

const ofLine = { n: 0, wall };

export const errorOf = (code: string) => ({ error: { code, message: '', requestId: 'req_1' } });

function request(
  method: string,
  path: string,
  startMs: number,
  status: number,
  answer: unknown,
  more = {},
): RequestLine {
  return {
    ...ofLine,
    wall: wallAt(startMs),
    id: 'r',
    tenant: 'a',
    client: 'c1',
    phase: 'load',
    method,
    path,
    idempotencyKey: null,
    prefer: null,
    body: null,
    startMs,
    endMs: startMs + 10,
    status,
    error: null,
    answer,
    requestId: null,
    retryAfter: null,
    idempotencyReplayed: false,
    ...more,
  };
}
const read = (path: string, answer: unknown, status = 200, more = {}): RequestLine =>
  request('GET', path, 900_000, status, answer, { phase: 'final', ...more });

const URL = 'http://127.0.0.1:1/hook';

export function event(
  sequence: number,
  type: string,
  sessionId: string | null = null,
  person = 'part_ada',
  reason?: string,
): JsonObject {
  const ofSession = { participant: { id: person }, sessionId, ...(reason === undefined ? {} : { reason }) };
  const data = { room: { id: 'room_one' }, ...(sessionId === null ? {} : ofSession) };
  return { id: `evt_${sequence}`, type, environmentId: 'env_a', sequence, data };
}

/** An event of part_bo, who is moved and then part_cy in the other room. */
function moveEvent(type: string, person: string, sequence: number, more: JsonObject = {}): JsonObject {
  const room = { id: person === 'part_bo' ? 'room_from' : 'room_to' };
  const data = { room, participant: { id: person }, sessionId: `sess_of_${person}`, ...more };
  const id = `evt_${type}_${person}`;
  return { id, type, environmentId: 'env_b', sequence, createdAt: wall, data };
}

export const arrival = (person: string, sequence: number): JsonObject =>
  moveEvent('participant.joined', person, sequence, { movedFrom: { roomId: 'room_from', participantId: 'part_bo' } });

function delivery(body: JsonObject, startMs: number, answer: DeliveryLine['answer'] = 200): DeliveryLine {
  const id = `dlv_${String(body['id']).slice(4)}`;
  return {
    ...ofLine,
    startMs,
    receivedMs: startMs,
    answeredMs: startMs + 5,
    tenant: 'a',
    url: URL,
    answer,
    verified: true as const,
    bodySha256: JSON.stringify(body),
    body: JSON.stringify(body),
    headers: {
      'x-service-delivery-id': id,
      'x-service-replay-count': '0',
      'x-service-signature': `t=${startMs},v1=${id}`,
    },
  };
}

export function frame(connection: string, atMs: number, what: FrameLine['what'], type: string): FrameLine {
  return {
    ...ofLine,
    atMs,
    tenant: 'a',
    roomId: 'room_one',
    participantId: 'part_ada',
    call: connection.split('.')[0] ?? '',
    connection,
    what,
    frame: { type },
    code: null,
    reason: null,
  };
}

const media = (atMs: number, packetsReceived: number): MediaLine => {
  return {
    ...ofLine,
    wall: wallAt(atMs),
    atMs,
    tenant: 'a',
    roomId: 'room_one',
    participantId: 'part_ada',
    call: 'call1',
    packetsReceived,
  };
};

export const fault = (what: 'begin' | 'end', atMs: number, more: Partial<NemesisLine> = {}): NemesisLine => {
  return { ...ofLine, atMs, fault: 'f1', what, action: 'kill', target: 'api 1', detail: '', ...more };
};

/** The parts of a history that exercises every guarantee and breaks none. Tests change parts. */
export function goodParts() {
  const room = { id: 'room_one', maxParticipants: 1 };
  const ending = { id: 'op_end', kind: 'room.end', status: 'pending', attempts: 0, lastError: null };
  const removal = { ...ending, id: 'op_remove', kind: 'participant.remove' };
  return {
    endpoint: request('POST', '/v1/webhooks', 0, 201, { id: 'whe_one', url: URL, events: ['*'], ordering: 'room' }),
    room: request('POST', '/v1/rooms', 1000, 201, room, { idempotencyKey: 'key' }),
    roomAgain: request('POST', '/v1/rooms', 1100, 201, room, { idempotencyKey: 'key' }),
    token: request('POST', '/v1/rooms/room_one/tokens', 1200, 201, { participant: { id: 'part_ada' } }),
    foreign: request('GET', '/v1/rooms/room_one', 1300, 404, errorOf('ROOM_NOT_FOUND'), { tenant: 'b' }),
    remove: request('DELETE', '/v1/rooms/room_one/participants/part_ada', 50_000, 202, removal),
    end: request('DELETE', '/v1/rooms/room_one', 60_000, 202, ending),
    removed: null as RequestLine | null,
    endAgain: null as RequestLine | null,
    // At the end, as a run of the harness.
    recovery: request('POST', '/v1/webhooks/whe_one/recoveries', 700_000, 202, {}),
    record: request('POST', '/v1/rooms/room_one/recordings', 3000, 202, { id: 'rec_one', roomId: 'room_one' }),
    recording: {
      id: 'rec_one',
      roomId: 'room_one',
      mode: 'tracks',
      status: 'completed',
      lastError: null,
      startedAt: wallAt(3000),
      endedAt: wallAt(60_000),
      files: [{ id: 'rfl_one', startMs: 1000, durationMs: 56_000 }],
    } as JsonObject,
    readRoom: read('/v1/rooms/room_one', room),
    readOperations: read('/v1/operations', {
      data: [
        { ...ending, status: 'completed', attempts: 2 },
        { ...removal, status: 'failed', attempts: 8, lastError: { code: 'STEP_FAILED', message: '' } },
      ],
    }),
    readRemoval: read('/v1/operations/op_remove', { ...removal, status: 'completed', attempts: 9 }),
    events: [
      event(1, 'room.created'),
      event(2, 'participant.joined', 'sess_1'),
      event(3, 'participant.left', 'sess_1'),
      event(4, 'participant.joined', 'sess_2'),
      event(5, 'participant.left', 'sess_2'),
      event(6, 'room.ended'),
    ],
    move: read('/v1/rooms/room_from/participants/part_bo/move', { id: 'op_move', status: 'completed' }),
    moved: [
      moveEvent('participant.joined', 'part_bo', 1),
      moveEvent('participant.left', 'part_bo', 2, { reason: 'moved' }),
      arrival('part_cy', 1),
    ],
    sessions: [
      { id: 'sess_1', roomId: 'room_one', participantId: 'part_ada', leftAt: wall },
      { id: 'sess_2', roomId: 'room_one', participantId: 'part_ada', leftAt: wall },
    ],
    deliveries: [1, 2, 3, 4, 5, 6].map((n) => ({
      id: `dlv_${n}`,
      eventId: `evt_${n}`,
      endpointId: 'whe_one',
      status: 'succeeded',
      failureReason: null,
      attempts: n === 2 ? 2 : 1,
      replayCount: 0,
    })) as JsonObject[],
    attempts: [
      { id: 'att_1', deliveryId: 'dlv_2', replayCount: 0, attempt: 1 },
      { id: 'att_2', deliveryId: 'dlv_2', replayCount: 0, attempt: 2 },
    ] as JsonObject[],
    received: [
      delivery(event(1, 'room.created'), 1500),
      delivery(event(2, 'participant.joined', 'sess_1'), 2000, 500),
      delivery(event(2, 'participant.joined', 'sess_1'), 8000),
      ...[3, 4, 5, 6].map((n) => delivery(event(n, 'participant.left'), 8000 + n * 100)),
    ],
    frames: [
      frame('call1.1', 2000, 'sent', 'join'),
      frame('call1.1', 2100, 'received', 'welcome'),
      frame('call1.1', 2200, 'sent', 'publish'),
      frame('call1.2', 70_000, 'sent', 'join'),
      frame('call1.2', 70_100, 'closed', ''),
    ],
    media: [
      ...[media(40_000, 100), media(45_000, 300), media(70_000, 350), media(71_000, 350)],
      // Of somebody who listens all the time.
      ...Array.from({ length: 6 }, (_, n) => ({ ...media(40_000 + 1000 * n, 50 * n), call: 'call9' })),
    ],
    nemesis: [] as NemesisLine[],
    /** With a key that was revoked at 10 s. */
    revoked: request('GET', '/v1/', 20_000, 401, errorOf('UNAUTHORIZED'), { client: 'key' }),
    failures: [] as string[],
    forwards: { opened: 2, left: [] as string[], ports: [] as number[] },
    settled: true,
    readAll: true,
  };
}

export type Parts = ReturnType<typeof goodParts>;

/** Puts the parts together, with their numbers. */
export function historyOf(parts: Parts): History {
  const {
    events,
    sessions,
    deliveries,
    attempts,
    received,
    frames,
    media,
    nemesis,
    failures,
    forwards,
    settled,
    readAll,
    recording,
    moved,
    ...single
  } = parts;
  const lists = [
    read('/v1/recordings', { data: [recording], nextCursor: null }),
    read('/v1/events?roomId=room_one', { data: events, nextCursor: null }),
    read('/v1/events?roomId=room_from', { data: moved, nextCursor: null }, 200, { tenant: 'b' }),
    read('/v1/rooms/room_one/sessions', { data: sessions, nextCursor: null }),
    read('/v1/deliveries', { data: deliveries, nextCursor: null }),
    read('/v1/webhooks/whe_one/deliveries/dlv_2/attempts', { data: attempts, nextCursor: null }),
  ];
  const count = <T extends object>(lines: T[]): T[] => lines.map((line, n) => ({ ...line, n }));
  return {
    run,
    requests: count([...Object.values(single).filter((each) => each !== null), ...lists]),
    frames: count(frames),
    deliveries: count(received),
    media: count(media),
    nemesis: count(nemesis),
    marks: count<MarkLine>([
      { ...ofLine, atMs: 10_000, mark: 'key revoked' as const, detail: { client: 'key' } },
      ...(settled ? [{ ...ofLine, atMs: 800_000, mark: 'settled' as const, detail: {} }] : []),
      ...(readAll ? [{ ...ofLine, atMs: 900_000, mark: 'final reads ended' as const, detail: {} }] : []),
      { ...ofLine, atMs: 950_000, mark: 'forwards' as const, detail: forwards },
      ...failures.map((message) => ({
        ...ofLine,
        atMs: 5,
        mark: 'app failed' as const,
        detail: { app: 'api 1', message },
      })),
    ]),
  };
}
