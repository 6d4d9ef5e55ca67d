import {
  formatTimestamp,
  operationFailed,
  participantJoined,
  participantLeft,
  participantUpdated,
  presentOperation,
  presentLiveParticipant,
  presentParticipant,
  presentLiveRoom,
  presentSessionRecord,
  presentUsageDay,
  presentWebhookEndpoint,
  roomCreated,
  roomEnded,
  roomStarted,
  roomUpdated,
  serialiseEvent,
  SIGNATURE_CONTRACT,
  trackMuted,
  trackPublished,
  trackUnpublished,
  webhookDisabled,
  webhookFailing,
  webhookRecovered,
  webhookTest,
  type EventType,
  type NewEvent,
  type OperationState,
  type ParticipantState,
  type RoomState,
  type TrackIdentity,
  type WebhookEndpointState,
} from '@callplane/core';

import { EXAMPLE_IDS, RECEIVER_URL } from './examples.js';

const TENANT = { projectId: EXAMPLE_IDS.projectId, environmentId: EXAMPLE_IDS.environmentId };
const at = (time: string) => new Date(`2026-11-20T${time}.000Z`);
const BEGIN = at('10:00:00');
const JOINED = at('10:05:00');
const LEFT = at('10:45:00');

const ROOM: RoomState = {
  id: EXAMPLE_IDS.roomId,
  name: 'Daily',
  metadata: { team: 'blue', tags: ['weekly'] },
  status: 'active',
  maxParticipants: 20,
  emptyTimeoutSeconds: 900,
  createdAt: BEGIN,
  startedAt: JOINED,
  endedAt: null,
};
const PARTICIPANT: ParticipantState = {
  id: EXAMPLE_IDS.participantId,
  roomId: EXAMPLE_IDS.roomId,
  externalId: 'user-4711',
  name: 'Ada',
  metadata: { avatar: 'https://example.com/ada.png' },
  role: 'participant',
  createdAt: BEGIN,
  connectedAt: JOINED,
  leftAt: null,
  tokenExpiresAt: at('10:10:00'),
};
const OPERATION: OperationState = {
  id: 'op_01m7xhkw0cfvqteeeq2c3fv3q9',
  kind: 'room.end',
  status: 'pending',
  attempts: 0,
  lastError: null,
  completedAt: null,
};
const WEBHOOK: WebhookEndpointState = {
  id: EXAMPLE_IDS.endpointId,
  url: RECEIVER_URL,
  events: ['room.ended', 'participant.left'],
  description: 'Billing',
  enabled: true,
  disabledReason: null,
  signingKeyVersion: 1,
  nextSigningKeyVersion: null,
  nextActivatesAt: null,
  ordering: 'room',
  maxPerSecond: 50,
  maxConcurrent: null,
  standardWebhooks: false,
  retryRejected: false,
  failingSince: null,
  createdAt: BEGIN,
  updatedAt: BEGIN,
};
const TRACK: TrackIdentity = { trackId: 'camera', kind: 'video', source: 'camera' };

const room = presentLiveRoom(TENANT, { ...ROOM, participantCount: 1 });
const participant = presentParticipant(PARTICIPANT, JOINED);
const operation = presentOperation(OPERATION);
const webhook = presentWebhookEndpoint(WEBHOOK);

const subject = { tenant: TENANT, room: ROOM, now: JOINED };
const session = { sessionId: EXAMPLE_IDS.sessionId, participant: PARTICIPANT };
const left = { ...session, participant: { ...PARTICIPANT, leftAt: LEFT }, tracks: [] };
const failedOperation: OperationState = {
  ...OPERATION,
  status: 'failed',
  attempts: 8,
  lastError: { code: 'STEP_FAILED', message: 'The step "destroy the media room" failed.' },
};
const disabled = { ...WEBHOOK, enabled: false, disabledReason: 'Every attempt has failed for 5 days.' };

const EVENTS: readonly NewEvent[] = [
  roomCreated(TENANT, { ...ROOM, status: 'created', startedAt: null }),
  roomStarted(subject, 1),
  roomUpdated({ ...subject, room: { ...ROOM, name: 'Daily, second half' } }, 1),
  roomEnded({ ...subject, room: { ...ROOM, status: 'ended', endedAt: LEFT } }),
  participantJoined(subject, session),
  ...participantLeft(subject, left, 'left'),
  trackPublished(subject, session, TRACK),
  trackUnpublished(subject, session, TRACK),
  trackMuted(subject, session, TRACK),
  participantUpdated(subject, { ...session, permissions: ['room:join', 'messages:send'] }),
  operationFailed({ ...subject, room: { ...ROOM, status: 'ending' } }, failedOperation, null),
  webhookDisabled(TENANT, disabled, JOINED),
  webhookFailing(TENANT, { ...WEBHOOK, failingSince: BEGIN }, JOINED),
  webhookRecovered(TENANT, WEBHOOK, BEGIN, JOINED),
  webhookTest(TENANT, WEBHOOK, JOINED),
];

/** Finished example event of a type. */
export function newEventExample(type: EventType): NewEvent {
  const event = EVENTS.find((example) => example.type === type);
  if (event === undefined) throw new Error(`no example of ${type}`);
  return { ...event, createdAt: JOINED };
}

/** Example event of each type, in the form that deliveries send. */
export function eventExample(type: EventType): unknown {
  const event = newEventExample(type);
  const sequence = event.roomId === null ? null : 7;
  return JSON.parse(serialiseEvent(event, { id: EXAMPLE_IDS.eventId, sequence })) as unknown;
}

const delivery = {
  id: EXAMPLE_IDS.deliveryId,
  eventId: EXAMPLE_IDS.eventId,
  eventType: 'participant.joined',
  endpointId: EXAMPLE_IDS.endpointId,
  roomId: EXAMPLE_IDS.roomId,
  url: RECEIVER_URL,
  status: 'pending',
  failureReason: null,
  replayCount: 0,
  attempts: 1,
  lastStatusCode: 503,
  lastErrorCode: null,
  nextAttemptAt: formatTimestamp(at('10:05:06')),
  blockedBy: null,
  signingKeyVersion: 1,
  createdAt: formatTimestamp(JOINED),
  completedAt: null,
};

const attempt = {
  id: 'att_01m7xhkw0cfvqteeeq2c3fv3qa',
  deliveryId: EXAMPLE_IDS.deliveryId,
  replayCount: 0,
  attempt: 1,
  url: RECEIVER_URL,
  signingKeyVersion: 1,
  startedAt: formatTimestamp(JOINED),
  durationMs: 84,
  outcome: 'response',
  errorCode: null,
  statusCode: 503,
  address: '93.184.216.34',
  timings: { dnsMs: 3, connectMs: 21, tlsMs: 24, firstByteMs: 36 },
  responseBody: 'maintenance',
  responseTruncated: false,
  responseHeaders: { 'content-type': 'text/plain', 'retry-after': '120', server: 'nginx' },
  requestHeaders: {
    'content-type': 'application/json',
    'user-agent': 'Callplane-Webhooks/1',
    'x-service-signature': 't=1795255200,v1=3f9c01ab…',
    'x-service-delivery-id': EXAMPLE_IDS.deliveryId,
    'x-service-replay-count': '0',
    'x-service-signing-key-version': '1',
  },
  earlierAddresses: [],
  phases: [
    { phase: 'dns', startMs: 0, durationMs: 3, failed: false },
    { phase: 'connect', startMs: 3, durationMs: 21, failed: false },
    { phase: 'tls', startMs: 24, durationMs: 24, failed: false },
    { phase: 'first_byte', startMs: 48, durationMs: 36, failed: false },
  ],
  diagnosis: {
    summary: 'HTTP 503: a proxy in front of the receiver cannot reach it, or it is overloaded.',
    advice: 'Check that the receiver runs and is healthy. Callplane retries.',
  },
};

const OUTCOMES = { pending: 1, delivering: 0, succeeded: 24, failed: 1 };

/** Example values for the schemas of successful answers, keyed by the title of the schema. */
export const ANSWER_EXAMPLES: Record<string, unknown> = {
  ApiContext: {
    apiVersion: 'v1',
    ...TENANT,
    keyId: 'key_01m7xhkw0cfvqteeeq2c3fv3qb',
    keyType: 'secret',
    scopes: ['rooms:create', 'rooms:read', 'tokens:create'],
  },
  Overview: {
    at: formatTimestamp(at('11:00:00')),
    calls: {
      activeRooms: { count: 1, capped: false },
      participants: { count: 3, capped: false },
      joins: {
        count: 4,
        capped: false,
        since: formatTimestamp(BEGIN),
        buckets: [{ from: formatTimestamp(BEGIN), count: 4 }],
      },
    },
    webhooks: {
      deliveries: {
        since: formatTimestamp(BEGIN),
        ...OUTCOMES,
        capped: false,
        buckets: [{ from: formatTimestamp(BEGIN), ...OUTCOMES }],
      },
      oldestDueAt: null,
      endpoints: { enabled: 1, disabled: 0 },
      failingEndpoints: [
        {
          endpointId: EXAMPLE_IDS.endpointId,
          url: RECEIVER_URL,
          enabled: true,
          failingSince: formatTimestamp(JOINED),
          lastFailedAt: formatTimestamp(LEFT),
        },
      ],
      failureRates: [{ endpointId: EXAMPLE_IDS.endpointId, tried: 12, failed: 3 }],
    },
  },
  Room: room,
  Participant: presentLiveParticipant(
    {
      ...PARTICIPANT,
      isRemoved: false,
      isConnected: true,
      permissions: ['room:join', 'video:publish'],
      tracks: [{ ...TRACK, muted: true }],
    },
    JOINED,
  ),
  RuntimeOperation: operation,
  ParticipantToken: {
    token: 'eyJhbGciOiJFUzI1NiIsImtpZCI6Ii4uLiJ9.….…',
    participantId: EXAMPLE_IDS.participantId,
    tokenId: 'tok_01m7xhkw0cfvqteeeq2c3fv3qc',
    expiresAt: formatTimestamp(at('10:10:00')),
  },
  IssuedToken: {
    id: 'tok_01m7xhkw0cfvqteeeq2c3fv3qc',
    participantId: EXAMPLE_IDS.participantId,
    participantName: 'Ada',
    permissions: ['room:join', 'video:publish'],
    state: 'used',
    createdAt: formatTimestamp(BEGIN),
    expiresAt: formatTimestamp(at('10:10:00')),
    usedAt: formatTimestamp(JOINED),
    revokedAt: null,
  },
  TurnCredentials: {
    expiresAt: formatTimestamp(at('11:00:00')),
    username: `1795172400:${EXAMPLE_IDS.sessionId}`,
    ttlSeconds: 3600,
    iceServers: [
      { urls: ['stun:turn.example.com:3478'] },
      {
        urls: ['turn:turn.example.com:3478?transport=udp', 'turn:turn.example.com:3478?transport=tcp'],
        username: `1795172400:${EXAMPLE_IDS.sessionId}`,
        credential: 'u9vRHxUe1QwV0Z1m3b3cYFJpZqk=',
        credentialType: 'password',
      },
    ],
  },
  UpdatedParticipant: { ...participant, permissions: ['room:join', 'messages:send'] },
  MutedTrack: { ...TRACK, muted: true },
  SentMessage: { sentAt: formatTimestamp(JOINED), recipients: 3 },
  Session: presentSessionRecord({
    id: EXAMPLE_IDS.sessionId,
    roomId: EXAMPLE_IDS.roomId,
    participantId: EXAMPLE_IDS.participantId,
    startedAt: JOINED,
    endedAt: LEFT,
    endReason: 'left',
    permissions: ['room:join', 'video:publish'],
    tracks: [{ ...TRACK, publishedAt: at('10:05:02'), unpublishedAt: LEFT }],
    quality: { good: 2371, fair: 20, poor: 0, lost: 4, relayed: 2395 },
  }),
  Usage: {
    from: '2026-11-20',
    to: '2026-11-20',
    interval: 'day',
    days: [
      presentUsageDay({
        day: new Date('2026-11-20T00:00:00.000Z'),
        rooms: 12,
        participantMs: 97_200_000,
        peakParticipants: 31,
        measuredSessions: 80,
        relayedSessions: 9,
        deliveries: 412,
      }),
    ],
  },
  SignatureContract: SIGNATURE_CONTRACT,
  WebhookEndpoint: webhook,
  WebhookEndpointWithSecret: { ...webhook, signingSecret: 'whsec_…' },
  WebhookDelivery: delivery,
  WebhookDeliveryDetail: {
    ...delivery,
    event: eventExample('participant.joined'),
    body: JSON.stringify(eventExample('participant.joined')),
    lastAttempt: attempt,
    diagnosis: null,
  },
  WebhookAttempt: attempt,
  WebhookRecovery: {
    id: EXAMPLE_IDS.recoveryId,
    endpointId: EXAMPLE_IDS.endpointId,
    since: formatTimestamp(BEGIN),
    until: formatTimestamp(at('12:00:00')),
    dryRun: false,
    includePending: true,
    status: 'pending',
    matched: 120,
    replayed: 80,
    woken: 39,
    skipped: 1,
    createdAt: formatTimestamp(at('12:05:00')),
    completedAt: null,
  },
  Event: eventExample('participant.joined'),
  PublicKeySet: {
    keys: [
      {
        kty: 'EC',
        crv: 'P-256',
        x: 'MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4',
        y: '4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM',
        kid: 'cn-I_WNMClehiVp51i_0VpOENW1upEerA8sEam5hn-s',
        alg: 'ES256',
        use: 'sig',
      },
    ],
  },
};
