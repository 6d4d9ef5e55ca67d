import { expect, test } from '@jest/globals';
import {
  EVENT_TYPES,
  endpointEvent,
  eraseEventBody,
  operationFailed,
  participantJoined,
  participantAdmitted,
  participantLeft,
  participantWaiting,
  participantUpdated,
  recordingEvent,
  roomCreated,
  roomEnded,
  roomStarted,
  roomUpdated,
  serialiseEvent,
  trackEvent,
  webhookRecovered,
  type EventType,
  type NewEvent,
  type OperationState,
  type ParticipantState,
  type RecordingState,
  type RoomState,
  type WebhookEndpointState,
} from '@callplane/core';
import formats from 'ajv-formats';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { eventSchema } from './events.schemas.js';

const ajv = new Ajv2020({ strict: false });
formats.default(ajv);

const at = (minute: number) => new Date(Date.UTC(2026, 10, 22, 8, minute));
const NOW = at(9);
const tenant = { projectId: 'proj_1', environmentId: 'env_1', traceparent: '00-trace' };
const room: RoomState = {
  id: 'room_1',
  name: 'Weekly',
  metadata: { tags: ['a'] },
  status: 'active',
  maxParticipants: 10,
  emptyTimeoutSeconds: 900,
  record: null,
  encryption: 'none',
  waitingRoom: false,
  createdAt: at(0),
  startedAt: at(1),
  endedAt: null,
  recordingSince: null,
};
const participant: ParticipantState = {
  id: 'part_1',
  roomId: 'room_1',
  externalId: 'user-7',
  name: 'Ada',
  metadata: {},
  role: 'participant',
  createdAt: at(0),
  connectedAt: at(1),
  leftAt: null,
  tokenExpiresAt: at(10),
};
const operation: OperationState = {
  id: 'op_1',
  kind: 'participant.remove',
  status: 'failed',
  attempts: 8,
  completedAt: null,
  lastError: { code: 'STEP_FAILED', message: 'The step "x" failed.' },
};
const endpoint: WebhookEndpointState = {
  id: 'whep_1',
  url: 'https://example.com/',
  events: ['*'],
  description: null,
  enabled: false,
  disabledReason: 'by an operator',
  signingKeyVersion: 2,
  nextSigningKeyVersion: 3,
  nextActivatesAt: new Date('2026-11-23T08:00:00Z'),
  ordering: 'none',
  maxPerSecond: null,
  maxConcurrent: null,
  standardWebhooks: false,
  retryRejected: false,
  headers: { authorization: 'sealed' },
  filter: null,
  failingSince: at(3),
  createdAt: at(0),
  updatedAt: at(9),
};
// Rows of the database may carry more columns than the presenters show.
const row = <T extends object>(state: T): T => ({ ...state, environmentId: 'env_1', secret: 'never shown' });
const subject = { tenant: row(tenant), room: row(room), now: NOW };
const track = row({ trackId: 'cam', kind: 'video' as const, source: 'camera' as const });
const session = { sessionId: 'sess_1', participant: row(participant) };
const ended = { ...session, participant: { ...session.participant, leftAt: NOW }, tracks: [track], waiting: false };

const ROOM =
  '{"id":"room_1","projectId":"proj_1","environmentId":"env_1","name":"Weekly","metadata":{"tags":["a"]},' +
  '"status":"active","maxParticipants":10,"emptyTimeoutSeconds":900,"record":null,"encryption":"none","waitingRoom":false,"createdAt":"2026-11-22T08:00:00.000Z",' +
  '"startedAt":"2026-11-22T08:01:00.000Z","endedAt":null,"recordingSince":null}';
const LIVE_ROOM = (participantCount: number) => ROOM.replace('null}', `null,"participantCount":${participantCount}}`);
const PARTICIPANT =
  '{"id":"part_1","roomId":"room_1","externalId":"user-7","name":"Ada","metadata":{},"role":"participant",' +
  '"joinedAt":"2026-11-22T08:01:00.000Z","leftAt":null}';
const LEFT = PARTICIPANT.replace('"leftAt":null', '"leftAt":"2026-11-22T08:09:00.000Z"');
const SESSION = `"room":${ROOM},"participant":${PARTICIPANT},"sessionId":"sess_1"`;
const TRACK = '"track":{"trackId":"cam","kind":"video","source":"camera"}';
const OPERATION =
  '{"id":"op_1","kind":"participant.remove","status":"failed","attempts":8,' +
  '"lastError":{"code":"STEP_FAILED","message":"The step \\"x\\" failed."},"completedAt":null}';
const recording: RecordingState = {
  ...{
    id: 'rec_1',
    environmentId: 'env_1',
    roomId: 'room_1',
    participantId: null,
    mode: 'tracks',
    audioOnly: false,
    layout: null,
  },
  ...{ metadata: {}, maxDurationSeconds: 60, status: 'completed', progress: 100, queuePosition: null, lastError: null },
  ...{ startedAt: at(1), endedAt: at(2), completedAt: at(3), gaps: [] },
  files: [
    {
      ...{ id: 'recf_1', kind: 'track', participantId: 'part_1', trackId: 'cam', source: 'camera' },
      ...{ contentType: 'video/webm', bytes: 9, sha256: 'ab', startMs: 5, durationMs: 70, width: 640, height: 360 },
      madeFrom: 'internal',
    },
  ],
};
const RECORDING =
  '{"id":"rec_1","roomId":"room_1","mode":"tracks","audioOnly":false,"layout":null,"participantId":null,"metadata":{},' +
  '"maxDurationSeconds":60,"status":"completed","progress":100,"queuePosition":null,"lastError":null,' +
  '"startedAt":"2026-11-22T08:01:00.000Z","endedAt":"2026-11-22T08:02:00.000Z",' +
  '"completedAt":"2026-11-22T08:03:00.000Z","durationMs":60000,"gaps":[],"files":[{"id":"recf_1","kind":"track",' +
  '"participantId":"part_1","trackId":"cam","source":"camera","contentType":"video/webm","bytes":9,"sha256":"ab",' +
  '"startMs":5,"durationMs":70,"width":640,"height":360}]}';
const WEBHOOK =
  '{"id":"whep_1","url":"https://example.com/","events":["*"],"description":null,"enabled":false,' +
  '"disabledReason":"by an operator","signingKeyVersion":2,"nextSigningKeyVersion":3,' +
  '"nextActivatesAt":"2026-11-23T08:00:00.000Z","ordering":"none","maxPerSecond":null,' +
  '"maxConcurrent":null,"standardWebhooks":false,"retryRejected":false,' +
  '"headers":{"authorization":"***"},"filter":null,' +
  '"failingSince":"2026-11-22T08:03:00.000Z","createdAt":"2026-11-22T08:00:00.000Z",' +
  '"updatedAt":"2026-11-22T08:09:00.000Z"}';

const [unpublishedAtEnd, left] = participantLeft(subject, ended, 'removed');
const other = { roomId: 'room_2', participantId: 'part_2', sessionId: 'sess_2' };
const [, moved] = participantLeft(subject, { ...ended, movedTo: other }, 'moved');
const OTHER = '{"roomId":"room_2","participantId":"part_2","sessionId":"sess_2"}';

/** Type, event, the bytes of `data`, and the participant by whom an erasure finds the event. */
const EVENTS: readonly [type: EventType, event: NewEvent | undefined, data: string, participantId: string | null][] = [
  ['room.created', { ...roomCreated(subject.tenant, subject.room), createdAt: NOW }, `{"room":${LIVE_ROOM(0)}}`, null],
  ['room.started', roomStarted(subject, 1), `{"room":${LIVE_ROOM(1)}}`, null],
  ['room.updated', roomUpdated(subject, 3), `{"room":${LIVE_ROOM(3)}}`, null],
  ['room.ended', roomEnded(subject), `{"room":${LIVE_ROOM(0)}}`, null],
  ['participant.joined', participantJoined(subject, session), `{${SESSION}}`, 'part_1'],
  ['participant.waiting', participantWaiting(subject, session), `{${SESSION}}`, 'part_1'],
  ['participant.admitted', participantAdmitted(subject, session), `{${SESSION}}`, 'part_1'],
  [
    'participant.admitted',
    participantAdmitted(subject, { ...session, sessionId: null }),
    `{${SESSION.replace('"sess_1"', 'null')}}`,
    'part_1',
  ],
  [
    'participant.left',
    participantLeft(subject, { ...ended, tracks: [], waiting: true }, 'left')[0],
    `{${SESSION.replace(PARTICIPANT, LEFT)},"reason":"left","waiting":true}`,
    'part_1',
  ],
  ['participant.left', left, `{${SESSION.replace(PARTICIPANT, LEFT)},"reason":"removed"}`, 'part_1'],
  ['participant.joined', participantJoined(subject, session, other), `{${SESSION},"movedFrom":${OTHER}}`, 'part_1'],
  ['participant.left', moved, `{${SESSION.replace(PARTICIPANT, LEFT)},"reason":"moved","movedTo":${OTHER}}`, 'part_1'],
  [
    'participant.updated',
    participantUpdated(subject, session, ['room:join', 'audio:publish']),
    `{${SESSION},"permissions":["room:join","audio:publish"]}`,
    'part_1',
  ],
  [
    'participant.updated',
    participantUpdated(subject, { ...session, sessionId: null }, ['room:join']),
    `{${SESSION.replace('"sess_1"', 'null')},"permissions":["room:join"]}`,
    'part_1',
  ],
  ['track.published', trackEvent('track.published', subject, session, track), `{${SESSION},${TRACK}}`, 'part_1'],
  ['track.unpublished', trackEvent('track.unpublished', subject, session, track), `{${SESSION},${TRACK}}`, 'part_1'],
  ['track.muted', trackEvent('track.muted', subject, session, track), `{${SESSION},${TRACK}}`, 'part_1'],
  ['track.unpublished', unpublishedAtEnd, `{${SESSION.replace(PARTICIPANT, LEFT)},${TRACK}}`, 'part_1'],
  ...(['recording.started', 'recording.stopped', 'recording.completed', 'recording.failed'] as const).map(
    (type): [EventType, NewEvent, string, null] => [
      type,
      recordingEvent(type, subject, recording),
      `{"room":${ROOM},"recording":${RECORDING}}`,
      null,
    ],
  ),
  ['operation.failed', operationFailed(subject, operation, null), `{"operation":${OPERATION},"room":${ROOM}}`, null],
  [
    'operation.failed',
    operationFailed(subject, operation, participant),
    `{"operation":${OPERATION},"room":${ROOM},"participant":${PARTICIPANT}}`,
    'part_1',
  ],
  ['webhook.disabled', endpointEvent('webhook.disabled', tenant, row(endpoint), NOW), `{"webhook":${WEBHOOK}}`, null],
  [
    'webhook.endpoint.failing',
    endpointEvent('webhook.endpoint.failing', tenant, row(endpoint), NOW),
    `{"webhook":${WEBHOOK}}`,
    null,
  ],
  [
    'webhook.endpoint.recovered',
    webhookRecovered(tenant, { ...row(endpoint), failingSince: null }, at(3), NOW),
    `{"webhook":${WEBHOOK.replace('"2026-11-22T08:03:00.000Z"', 'null')},"failedSince":"2026-11-22T08:03:00.000Z"}`,
    null,
  ],
  ['webhook.test', endpointEvent('webhook.test', tenant, row(endpoint), NOW), `{"webhook":${WEBHOOK}}`, null],
];

/** One field a line, so that a failure prints a diff of the fields, below the rule for them. */
const explained = (body: string) =>
  `Receivers rely on the present fields and their order. An added field is allowed: add it to this test and to CHANGELOG.md.\n${body.replaceAll(',"', ',\n"')}`;

test.each(EVENTS)('the bytes of %s stay the same, and are as documented', (type, event, data, participantId) => {
  const isOfRoom = !type.startsWith('webhook.');
  expect(event).toMatchObject({ type, participantId, roomId: isOfRoom ? 'room_1' : null });
  const sequence = isOfRoom ? 7 : null;
  const body = serialiseEvent(event!, { id: 'evt_1', sequence });
  expect([ajv.validate(eventSchema(type), JSON.parse(body)), ajv.errors]).toEqual([true, null]);
  const expected =
    `{"id":"evt_1","type":"${type}","apiVersion":"v1","createdAt":"2026-11-22T08:09:00.000Z","projectId":"proj_1",` +
    `"environmentId":"env_1","sequence":${sequence},"data":${data}}`;
  expect(explained(body)).toBe(explained(expected));
});

test('every event type has a builder and a row in the table of bytes', () => {
  expect(new Set(EVENTS.map(([type]) => type))).toEqual(new Set(EVENT_TYPES));
});

test('an event of a new room happens at its creation', () => {
  expect(roomCreated(tenant, room).createdAt).toEqual(room.createdAt);
});

test('the tracks of a session end before its participant leaves', () => {
  expect(participantLeft(subject, ended, 'left').map(({ type }) => type)).toEqual([
    'track.unpublished',
    'participant.left',
  ]);
});

test("eraseEventBody removes the personal data of the event's participant and nothing else", () => {
  const participant = {
    id: 'part_1',
    roomId: 'room_1',
    externalId: 'user-7',
    name: 'Ada',
    metadata: { phone: '+49 30' },
    role: 'participant',
    joinedAt: '2026-11-22T08:00:00.000Z',
    leftAt: null,
  };
  const room = { id: 'room_1', name: 'Weekly', metadata: JSON.parse('{"__proto__":{"n":1e-7},"Ada":[0.1]}') as object };
  const event = { id: 'evt_1', type: 'participant.joined', sequence: 3, data: { room, participant, sessionId: 's' } };
  const text = eraseEventBody(JSON.stringify(event), new Date('2026-11-22T09:00:00Z'));
  expect(text).not.toMatch(/user-7|\+49|"name":"Ada"/);
  const data = { ...event.data, participant: { ...participant, externalId: null, name: 'Erased', metadata: {} } };
  expect(text).toBe(JSON.stringify({ ...event, data, erasedAt: '2026-11-22T09:00:00.000Z' }));
});
