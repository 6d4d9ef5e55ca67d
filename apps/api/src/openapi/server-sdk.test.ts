import { beforeAll, describe, expect, test } from '@jest/globals';
import { createClient, type Callplane, type WebhookEvent } from '@callplane/server';
import { eventually } from '@callplane/testing';
import { startTestApi, type TestApi } from '../api.testkit.js';
import { customerDatabase } from './consumer-example.testkit.js';

/** The server SDK against the API that it is generated from. */

let api: TestApi;
let callplane: Callplane;
beforeAll(async () => {
  api = await startTestApi();
  callplane = createClient({ baseUrl: `${api.url}/v1`, apiKey: api.tenant.key });
});

/** Narrows the union by `type`. The compiler rejects a missing case. */
function summary(event: WebhookEvent): string {
  switch (event.type) {
    case 'room.created':
    case 'room.started':
    case 'room.updated':
    case 'room.ended':
      return `${event.type} ${event.data.room.name} ${JSON.stringify(event.data.room.metadata['team'])}`;
    case 'participant.joined':
    case 'participant.waiting':
    case 'participant.admitted':
    case 'participant.left':
    case 'participant.updated':
    case 'track.published':
    case 'track.unpublished':
    case 'track.muted':
      return `${event.type} ${event.data.participant.name}`;
    case 'recording.started':
    case 'recording.stopped':
    case 'recording.completed':
    case 'recording.failed':
      return `${event.type} ${event.data.recording.id}`;
    case 'operation.failed':
      return `${event.data.operation.id} failed: ${event.data.participant?.name ?? event.data.room.name}`;
    case 'webhook.disabled':
    case 'webhook.endpoint.failing':
    case 'webhook.endpoint.recovered':
    case 'webhook.test':
      return `${event.type} ${event.data.webhook.url}`;
    default:
      return event satisfies never;
  }
}

describe('the server SDK', () => {
  test('creates a room, issues a token and reads both back', async () => {
    const metadata = { team: 'blue', nested: { tags: ['weekly', 1, null] } };
    const room = await callplane.createRoom({ name: 'Daily', metadata });
    const { token, participantId } = await callplane.issueToken({
      roomId: room.id,
      participantName: 'Ada',
      permissions: ['room:join', 'audio:publish'],
      metadata: { seat: 4 },
    });
    expect(token.split('.')).toHaveLength(3);
    expect(await callplane.readRoom({ roomId: room.id })).toEqual({ ...room, metadata, maxParticipants: 100 });
    const participant = await callplane.readParticipant({ roomId: room.id, participantId });
    expect(participant.metadata).toEqual({ seat: 4 });
    const { keys } = await callplane.readJwks();
    expect(new Set(keys.map(({ kty, alg }) => `${kty} ${alg}`))).toEqual(new Set(['EC ES256']));
  });

  test('iterates over a list of several pages, and over events as a union by type', async () => {
    const tenant = await api.newTenant();
    const own = createClient({ baseUrl: api.url, apiKey: tenant.key });
    for (const name of ['a', 'b', 'c']) await own.createRoom({ name, metadata: { team: name } });
    const names: string[] = [];
    for await (const { name } of own.listRooms({ limit: 2 })) names.push(name);
    expect(names).toEqual(['c', 'b', 'a']);
    // An event appears once no older transaction is open, and other test files have open ones.
    const summaries = await eventually(async () => {
      const found: string[] = [];
      for await (const event of own.listEvents({ limit: 2, type: 'room.created' })) found.push(summary(event));
      return found.length === 3 && found;
    });
    expect(summaries).toEqual(['a', 'b', 'c'].map((name) => `room.created ${name} "${name}"`));
  });
});

describe('the example of a consumer on PostgreSQL', () => {
  test('processes each event exactly once, in order, with two processes that are killed at random and within a transaction', async () => {
    const tenant = await api.newTenant();
    const own = createClient({ baseUrl: api.url, apiKey: tenant.key });
    const { database, consumer, processed, counted } = await customerDatabase(`${api.url}/v1`, tenant.key);
    const makeEvents = async (count: number): Promise<void> => {
      for (let n = 0; n < count; n++) await own.createRoom({ name: `Room ${n}` });
    };
    const kill = async ({ child, ended }: (typeof running)[number]): Promise<void> => {
      child.kill('SIGKILL');
      expect(await ended).toBe('SIGKILL');
    };
    const running = [consumer(), consumer()];
    for (let kills = 0; kills < 4; kills++) {
      const before = (await processed()).length;
      await makeEvents(20);
      const moment = before + 1 + Math.floor(Math.random() * 19);
      await eventually(async () => (await processed()).length >= moment, { intervalMs: 5 });
      await kill(running.splice(kills % 2, 1)[0]!);
      running.push(consumer());
    }

    // Both consumers stop within their transactions: one waits for the counters, the other one for the cursor.
    let release!: () => void;
    const held = new Promise<void>((resolve) => (release = resolve));
    const locked = database.transaction(async (tx) => {
      // A stronger lock would get a transaction id, and hide the events of later transactions.
      await tx.$executeRaw`LOCK TABLE event_counts IN EXCLUSIVE MODE`;
      await held;
    });
    await makeEvents(20);
    await eventually(async () => {
      const [row] = await database.sql.$queryRaw<{ waiting: number }[]>`
        SELECT count(*)::int AS waiting FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      return row!.waiting === 2;
    });
    await Promise.all(running.splice(0).map(kill));
    release();
    await locked;
    running.push(consumer(), consumer());

    const made = 5 * 20;
    await eventually(async () => (await processed()).length >= made);
    for (const { child, started, ended, errors } of running) {
      await started;
      child.kill('SIGTERM');
      expect([await ended, errors()]).toEqual([0, '']);
    }
    const events: string[] = [];
    for await (const { id } of own.listEvents({ limit: 100 })) events.push(id);
    expect(await processed()).toEqual(events);
    expect([events.length, await counted()]).toEqual([made, made]);
  });
});

/** Never called. Contains calls that must not compile. */
async function refused(client: Callplane, event: WebhookEvent): Promise<void> {
  // @ts-expect-error a room has a name
  await client.createRoom({ metadata: {} });
  // @ts-expect-error metadata is an object
  await client.createRoom({ name: 'Daily', metadata: 'text' });
  // @ts-expect-error not every event has a room
  void event.data.room.name;
  // @ts-expect-error a room that was created has no participant
  if (event.type === 'room.created') void event.data.participant.name;
}
void refused;
