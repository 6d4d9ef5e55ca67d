import type { TSchema } from 'typebox';

type Json = Record<string, unknown>;

/** The ids in all examples: one room with one participant, another room, and one webhook endpoint. */
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
  recordingId: 'rec_01m7xhkw0cfvqteeeq2c3fv3q8',
  fileId: 'recf_01m7xhkw0cfvqteeeq2c3fv3q9',
  targetId: 'room_01m7xhkw0cfvqteeeq2c3fv3qm',
} as const;

const TIME = '2026-11-20T10:00:00.000Z';
const TURN_USERNAME = `1795172400:${EXAMPLE_IDS.sessionId}`;

/**
 * Values that a schema does not imply, by the name of the property or parameter, or by the title of its object and its
 * name. A parameter has no object.
 */
const VALUES: Json = {
  ...EXAMPLE_IDS,
  activateInSeconds: 86_400,
  address: '93.184.216.34',
  after: EXAMPLE_IDS.eventId,
  // Only the server can create one.
  cursor: undefined,
  description: 'Billing',
  emptyTimeoutSeconds: 900,
  externalId: 'user-4711',
  headers: { authorization: 'Bearer 4711' },
  filter: { 'room.metadata.team': ['blue'], 'room.name': [{ prefix: 'Dai' }] },
  'Idempotency-Key': 'daily-2026-11-20',
  kinds: 'rooms,participants',
  lastError: null,
  maxParticipants: 20,
  maxPerSecond: 50,
  metadata: { team: 'blue', tags: ['weekly'] },
  name: 'Daily',
  namePrefix: 'Dai',
  nextCursor: null,
  participantName: 'Ada',
  permissions: ['room:join', 'video:publish'],
  Prefer: 'wait=5',
  region: 'eu-west',
  responseBody: 'maintenance',
  since: TIME,
  statusCode: 503,
  token: 'eyJhbGciOiJFUzI1NiIsImtpZCI6Ii4uLiJ9.….…',
  trackId: 'camera',
  until: '2026-11-20T12:00:00.000Z',
  url: 'https://example.com/hooks/calls',
  username: TURN_USERNAME,
  'MoveParticipant.roomId': EXAMPLE_IDS.targetId,
  'MoveOne.roomId': EXAMPLE_IDS.targetId,
  // Not with `participantId`, which the complete example has.
  'IssueToken.waiting': undefined,
  'MutedTrack.muted': true,
  'RoomMediaNode.id': 'm1',
  'RoomMediaForward.fromNodeId': 'm1',
  'RoomMediaForward.toNodeId': 'm2',
  'Participant.name': 'Ada',
  'AskParticipant.method': 'board.clear',
  'AskParticipant.payload': { layer: 'ink' },
  'ParticipantAnswer.payload': { cleared: 3 },
  'SendMessage.data': { text: 'The call ends in five minutes.' },
  'SendMessage.to': [EXAMPLE_IDS.participantId],
  'StoredParticipant.name': 'Ada',
  'TriedFilterPath.path': 'room.metadata.team',
  'TriedFilterPath.value': 'blue',
  'TurnCredentials.iceServers': [
    { urls: ['stun:turn.example.com:3478'] },
    {
      urls: ['turn:turn.example.com:3478?transport=udp', 'turn:turn.example.com:3478?transport=tcp'],
      username: TURN_USERNAME,
      credential: 'u9vRHxUe1QwV0Z1m3b3cYFJpZqk=',
      credentialType: 'password',
    },
  ],
  'UpdateParticipant.name': 'Ada Lovelace',
  'WebhookAttempt.outcome': 'response',
  'WebhookEndpoint.headers': { authorization: '***' },
  'WebhookEndpointWithSecret.headers': { authorization: '***' },
  'WebhookDiagnosis.advice': 'Check that the receiver runs and is healthy. Callplane retries.',
  'WebhookDiagnosis.summary': 'HTTP 503: a proxy in front of the receiver cannot reach it, or it is overloaded.',
  'WebhookEndpoint.enabled': true,
  'WebhookEndpointWithSecret.enabled': true,
};

/**
 * An example of a schema.
 * @param name of the property or parameter.
 * @param options `title` of the object that has the property; `all`: with the optional properties.
 */
export function exampleOf(schema: unknown, name = '', options: { title?: string; all?: boolean } = {}): unknown {
  const key = [`${options.title ?? ''}.${name}`, name].find((each) => Object.hasOwn(VALUES, each));
  if (key !== undefined) return VALUES[key];
  const { const: only, enum: choices, examples, anyOf, oneOf, type, ...others } = schema as Json;
  if (only !== undefined) return only;
  if ('default' in others) return others['default'];
  const [first] = (examples ?? choices ?? []) as unknown[];
  if (first !== undefined) return first;
  const [variant, alternative] = (anyOf ?? oneOf ?? []) as Json[];
  if (variant !== undefined) {
    const isNullable = alternative?.['type'] === 'null' && !['object', 'array'].includes(String(variant['type']));
    return isNullable ? null : exampleOf(variant, '', options);
  }
  if (type === 'object') return exampleObject(others, options.all ?? false);
  if (type === 'array') return [exampleOf(others['items'], '', options)];
  if (type === 'integer' || type === 'number') return others['minimum'] ?? 1;
  return type === 'boolean' ? false : exampleText(others);
}

function exampleObject({ title, properties = {}, required = [] }: Json, all: boolean): Json {
  const names = Object.keys(properties as Json).filter((name) => all || (required as string[]).includes(name));
  const options = { title: String(title), all };
  return Object.fromEntries(names.map((name) => [name, exampleOf((properties as Json)[name], name, options)]));
}

/** The description of an id names its prefix. */
function exampleText({ format, description }: Json): string {
  if (format === 'date-time') return TIME;
  if (format === 'date') return TIME.slice(0, 10);
  const prefix = /`([a-z]+_)…`/.exec(String(description))?.[1];
  if (prefix === undefined) return '…';
  return Object.values(EXAMPLE_IDS).find((id) => id.startsWith(prefix)) ?? `${prefix}01m7xhkw0cfvqteeeq2c3fv3q8`;
}

/** Examples of a request body: with the required fields, and with all. */
export function bodyExamples(schema: TSchema | undefined): { minimal?: object; complete?: object } {
  if (schema === undefined) return {};
  return { minimal: exampleOf(schema) as object, complete: exampleOf(schema, '', { all: true }) as object };
}

export function errorExample(code: string, message: string): unknown {
  const requestId = 'req_01m7xhkw0cfvqteeeq2c3fv3q8';
  if (code !== 'VALIDATION_FAILED') return { error: { code, message, requestId } };
  const detail = { path: 'path.roomId', message: 'must match ^[A-Za-z0-9_-]{1,128}$' };
  return { error: { code, message: `${detail.path} ${detail.message}`, requestId, details: [detail] } };
}
