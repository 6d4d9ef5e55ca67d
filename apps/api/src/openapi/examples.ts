/** The ids in all examples: one room with one participant, and one webhook endpoint. */
export const EXAMPLE_IDS = {
  projectId: 'proj_01m7xhkw0cfvqteeeq2c3fv3q0',
  environmentId: 'env_01m7xhkw0cfvqteeeq2c3fv3q1',
  roomId: 'room_01m7xhkw0cfvqteeeq2c3fv3qk',
  participantId: 'part_01m7xhkw0cfvqteeeq2c3fv3q2',
  sessionId: 'sess_01m7xhkw0cfvqteeeq2c3fv3q3',
  endpointId: 'whep_01m7xhkw0cfvqteeeq2c3fv3q4',
  eventId: 'evt_01m7xhkw0cfvqteeeq2c3fv3q5',
  deliveryId: 'dlv_01m7xhkw0cfvqteeeq2c3fv3q6',
  recoveryId: 'rcv_01m7xhkw0cfvqteeeq2c3fv3q7',
} as const;

export const RECEIVER_URL = 'https://example.com/hooks/calls';
const REQUEST_ID = 'req_01m7xhkw0cfvqteeeq2c3fv3q8';

/** Example request bodies by operation id. The name of each example describes its content. */
export const BODY_EXAMPLES: Record<string, Record<string, unknown>> = {
  createConsoleSession: { all: {}, readOnly: { readOnly: true } },
  createRoom: {
    minimal: { name: 'Daily' },
    complete: {
      name: 'Daily',
      metadata: { team: 'blue', tags: ['weekly'] },
      maxParticipants: 20,
      emptyTimeoutSeconds: 900,
    },
  },
  updateRoom: {
    rename: { name: 'Daily, second half' },
    enlarge: { metadata: { team: 'blue' }, maxParticipants: 50 },
  },
  issueToken: {
    minimal: { participantName: 'Ada' },
    complete: {
      participantName: 'Ada',
      permissions: ['room:join', 'audio:publish', 'video:publish', 'messages:send'],
      metadata: { avatar: 'https://example.com/ada.png' },
      ttlSeconds: 600,
      externalId: 'user-4711',
    },
  },
  updateParticipant: {
    mayNotSpeak: { permissions: ['room:join', 'messages:send'] },
    rename: { name: 'Ada Lovelace', metadata: { avatar: 'https://example.com/ada.png' } },
  },
  sendMessage: {
    toAll: { data: { text: 'The call ends in five minutes.' } },
    toOne: { data: { hand: 'lowered' }, to: [EXAMPLE_IDS.participantId] },
  },
  issueTurnCredentials: {
    session: { roomId: EXAMPLE_IDS.roomId, sessionId: EXAMPLE_IDS.sessionId },
    environment: {},
  },
  createWebhook: {
    minimal: { url: RECEIVER_URL },
    complete: {
      url: RECEIVER_URL,
      events: ['room.ended', 'participant.left'],
      description: 'Billing',
      enabled: true,
      ordering: 'room',
      maxPerSecond: 50,
      maxConcurrent: null,
      standardWebhooks: false,
      retryRejected: true,
    },
  },
  updateWebhook: {
    enable: { enabled: true },
    subscribe: { events: ['*'], description: null },
    limit: { maxPerSecond: 100, maxConcurrent: 8 },
  },
  rotateWebhookSecret: { inADay: { activateInSeconds: 86_400 }, atOnce: { activateInSeconds: 0 } },
  replayDelivery: { firstReplay: { expectedReplayCount: 0 } },
  createRecovery: {
    window: { since: '2026-11-20T10:00:00Z', until: '2026-11-20T12:00:00Z' },
    count: { since: '2026-11-20T10:00:00Z', dryRun: true },
    failedOnly: { since: '2026-11-20T10:00:00Z', includePending: false },
  },
};

/** Values for parameters whose schema has no default or enum. */
const PARAMETER_EXAMPLES: Record<string, string> = {
  ...EXAMPLE_IDS,
  after: EXAMPLE_IDS.eventId,
  trackId: 'camera',
  name: 'Daily',
  namePrefix: 'Dai',
  kinds: 'rooms,participants',
  externalId: 'user-4711',
  since: '2026-11-20T10:00:00.000Z',
  until: '2026-11-20T12:00:00.000Z',
  from: '2026-11-01',
  to: '2026-11-30',
  'Idempotency-Key': 'daily-2026-11-20',
  Prefer: 'wait=5',
};

/** An example value for a parameter. Undefined for cursors, because only the server can create one. */
export function parameterExample(name: string, schema: Record<string, unknown>): unknown {
  const choices = schema['enum'] as unknown[] | undefined;
  return PARAMETER_EXAMPLES[name] ?? schema['default'] ?? choices?.[0];
}

/** An example error body with this code. */
export function errorExample(code: string, message: string): unknown {
  if (code !== 'VALIDATION_FAILED') return { error: { code, message, requestId: REQUEST_ID } };
  const detail = { path: 'path.roomId', message: 'must match ^[A-Za-z0-9_-]{1,128}$' };
  const first = `${detail.path} ${detail.message}`;
  return { error: { code, message: first, requestId: REQUEST_ID, details: [detail] } };
}
