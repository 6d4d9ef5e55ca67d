/**
 * A customer's backend that uses a generated client. generated-client.test.ts copies this file, generates
 * `callplane.ts` beside the copy, compiles both and runs the copy. The file does not compile in place.
 */
import createClient from 'openapi-fetch';
import type { components, paths, webhooks } from './callplane.js';

type Event = components['schemas']['Event'];
type Delivered = webhooks['event']['post']['requestBody']['content']['application/json'];

const [baseUrl = '', key = ''] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${key}` } });

/** Narrows the union by `type`. The compiler rejects a missing case. */
function summary(event: Event): string {
  switch (event.type) {
    case 'room.created':
    case 'room.started':
    case 'room.ended':
      return `${event.type} ${event.data.room.name} ${JSON.stringify(event.data.room.metadata['team'])}`;
    case 'participant.joined':
      return `${event.data.participant.name} joined in ${event.data.sessionId}`;
    case 'participant.left':
      return `${event.data.participant.name} left: ${event.data.reason}`;
    case 'participant.updated':
      return `${event.data.participant.name} may ${event.data.permissions.join(', ')}`;
    case 'track.published':
    case 'track.unpublished':
    case 'track.muted':
      return `${event.data.track.kind} of ${event.data.participant.name}`;
    case 'operation.failed':
      return `${event.data.operation.id} failed: ${event.data.participant?.name ?? event.data.room.name}`;
    case 'webhook.disabled':
    case 'webhook.test':
      return `${event.type} ${event.data.webhook.url}`;
    default:
      return event satisfies never;
  }
}

/** Handles the body of a delivery, as a webhook receiver does. */
const receive = (body: Delivered): string => summary(body);

function present<T>(data: T | undefined, error: unknown): T {
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
}

const metadata = { team: 'blue', nested: { tags: ['weekly', 1, null] } };
// Omits the fields that have a default.
const created = await client.POST('/v1/rooms', {
  body: { name: 'Daily', metadata },
  params: { header: { 'Idempotency-Key': 'daily' } },
});
const room = present(created.data, created.error);
const read = await client.GET('/v1/rooms/{roomId}', { params: { path: { roomId: room.id } } });
const nested: unknown = read.data?.metadata['nested'];
const token = await client.POST('/v1/rooms/{roomId}/tokens', {
  params: { path: { roomId: room.id } },
  body: { participantName: 'Ada', permissions: ['room:join', 'audio:publish'], metadata: { seat: 4 } },
});
const { participantId } = present(token.data, token.error);
const participant = await client.GET('/v1/rooms/{roomId}/participants/{participantId}', {
  params: { path: { roomId: room.id, participantId } },
});
const events = await client.GET('/v1/events', { params: { query: { roomId: room.id } } });
const missing = await client.GET('/v1/rooms/{roomId}', { params: { path: { roomId: 'room_unknown' } } });
const code = missing.error?.error.code;
const keys = await client.GET('/.well-known/jwks.json');

/** Never called. Contains calls that must not compile. */
export async function refused(event: Event): Promise<void> {
  // @ts-expect-error a room has a name
  await client.POST('/v1/rooms', { body: { metadata } });
  // @ts-expect-error metadata is an object
  await client.POST('/v1/rooms', { body: { name: 'Daily', metadata: 'text' } });
  // @ts-expect-error a room has no such status
  const status: components['schemas']['Room']['status'] = 'open';
  // @ts-expect-error not every event has a room
  const name: string = event.data.room.name;
  // @ts-expect-error a room that was created has no participant
  if (event.type === 'room.created') console.log(event.data.participant.name);
  void [status, name];
}

console.log(
  JSON.stringify({
    room: { metadata: room.metadata, maxParticipants: room.maxParticipants, nested },
    requestId: created.response.headers.get('x-request-id'),
    participant: present(participant.data, participant.error).metadata,
    events: present(events.data, events.error).data.map(receive),
    missing: [missing.response.status, code],
    keys: present(keys.data, keys.error).keys.map(({ kty, alg }) => `${kty} ${alg}`),
  }),
);
