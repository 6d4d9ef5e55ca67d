import { beforeAll, expect, test } from '@jest/globals';
import { eventually, type TestApp } from '@callplane/testing';
import type { WebhookEvent } from '@callplane/webhook-verifier';
import { startReceiver, startWebhookStack, type Receiver, type WebhookStack } from '../faults/webhooks.testkit.js';

let stack: WebhookStack;
let api: TestApp;
let receiver: Receiver;
beforeAll(async () => {
  [stack, receiver] = await Promise.all([startWebhookStack(), startReceiver()]);
  [api] = await Promise.all([stack.spawnApi(), stack.spawnWebhookWorker(), stack.spawnWorker()]);
  await stack.register(api, receiver);
});

const roomOf = ({ data }: WebhookEvent) => (data['room'] as { id: string } | undefined)?.id;

/** All events that the API lists, over all pages. */
async function eventsOf(query: string): Promise<WebhookEvent[]> {
  const events: WebhookEvent[] = [];
  for (let after = ''; ;) {
    const { status, body } = await stack.call(api, 'GET', `/v1/events?limit=50${query}${after}`);
    expect(status).toBe(200);
    events.push(...(body.data as WebhookEvent[]));
    if (body.nextCursor === null || body.data.length === 0) return events;
    after = `&after=${String(body.nextCursor)}`;
  }
}

test('every event of created and ended rooms arrives once, signed and numbered without a gap', async () => {
  const rooms = await Promise.all(Array.from({ length: 15 }, () => stack.newRoom(api)));
  await Promise.all(
    rooms.map(async (roomId, index) => {
      await stack.join(roomId, index % 3);
      const { status } = await stack.call(api, 'DELETE', `/v1/rooms/${roomId}`);
      expect([202, 204]).toContain(status);
    }),
  );
  await eventually(() => receiver.rooms('room.ended').size === rooms.length);
  await stack.allDelivered();
  expect(new Set(receiver.counts().values())).toEqual(new Set([1]));
  for (const [index, roomId] of rooms.entries()) {
    const arrived = receiver.requests
      .map(({ event }) => event)
      .filter((event) => roomOf(event) === roomId)
      .sort((one, other) => Number(one.sequence) - Number(other.sequence));
    const left = Array.from({ length: index % 3 }, () => 'participant.left');
    expect(arrived.map(({ sequence }) => sequence)).toEqual(arrived.map((_, n) => n + 1));
    expect(arrived[0]?.type).toBe('room.created');
    expect(arrived.map(({ type }) => type).sort()).toEqual([...left, 'room.created', 'room.ended']);
    expect(await eventsOf(`&roomId=${roomId}`)).toEqual(arrived);
  }
  await eventually(async () => {
    const listed = await eventsOf('');
    expect(listed.map(({ id }) => id).sort()).toEqual([...receiver.counts().keys()].sort());
    return true;
  });
  receiver.check();
});
