import { expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import { measured } from './faults.testkit.js';
import { startReceiver, startWebhookStack } from './webhooks.testkit.js';

test('after an API is killed under load, the event of every room that it acknowledged is delivered', async () => {
  const [stack, receiver] = await Promise.all([startWebhookStack(), startReceiver()]);
  const [api, worker] = await Promise.all([stack.spawnApi(), stack.spawnWebhookWorker()]);
  const second = await startReceiver();
  await stack.register(api, receiver);
  await stack.register(api, second);

  const accepted: string[] = [];
  let unanswered = 0;
  const callers = Promise.all(
    Array.from({ length: 16 }, async () => {
      for (;;) {
        try {
          accepted.push(await stack.newRoom(api));
        } catch {
          unanswered += 1;
          return;
        }
      }
    }),
  );
  await eventually(() => accepted.length >= 200, { intervalMs: 1 });
  api.kill('SIGKILL');
  await callers;
  await api.exited;

  await stack.allDelivered();
  const rooms = (await stack.database.prisma.room.findMany({ select: { id: true } })).map(({ id }) => id);
  expect(rooms).toEqual(expect.arrayContaining(accepted));
  // This includes rooms whose response was lost with the API. Each event arrives once, because no worker lost a lease.
  for (const each of [receiver, second]) {
    expect(each.rooms('room.created')).toEqual(new Map(rooms.sort().map((id) => [id, 1])));
    each.check();
  }
  const sequences = new Set(receiver.requests.map(({ event }) => event.sequence));
  expect(sequences).toEqual(new Set([1]));
  measured({ accepted: accepted.length, unanswered, 'rooms made': rooms.length });
  expect(worker.output()).not.toContain('process failed');
});
