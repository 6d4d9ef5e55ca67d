import { once } from 'node:events';
import { expect, test } from '@jest/globals';
import { eventually, freezeVideoRoom, startTestJanus } from '@callplane/testing';
import type { MediaError } from '../types.js';
import { nodeOn, UP_WITHIN_MS } from './node.testkit.js';
import { PROBE_ROOM } from './probe.js';

test('a Janus whose VideoRoom is frozen is down for every process, until it is restarted', async () => {
  const janus = await startTestJanus();
  const deadlines = { pingEveryMs: 100, videoRoomMs: 1000 };
  const nodes = [
    nodeOn(janus, { deadlines }),
    nodeOn(janus, { deadlines }),
    nodeOn(janus, { deadlines, adminKey: '' }),
  ];
  await Promise.all(nodes.map((node) => node.untilUp(UP_WITHIN_MS)));
  const downs = nodes.map((node) => once(node, 'down') as Promise<[MediaError]>);
  const ups: string[] = [];
  for (const node of nodes) node.on('up', () => ups.push(node.id));
  await freezeVideoRoom(await nodes[0]!.openSession(), janus.adminKey);
  const frozenAt = performance.now();
  for (const [error] of await Promise.all(downs))
    expect(String(error.cause)).toMatch(/did not answer "(join|configure)"/);
  // The deadline and one probe, and as much for a slow machine.
  expect(performance.now() - frozenAt).toBeLessThan(2 * (1000 + 100) + 2000);

  // Janus itself answers new connections as before. They ask VideoRoom, too.
  const late = nodeOn(janus, { deadlines });
  await expect(late.untilUp(2500)).rejects.toMatchObject({
    code: 'unavailable',
    cause: expect.objectContaining({ message: 'Janus did not answer "join" in time' }),
  });
  expect(ups).toEqual([]);

  await janus.restart();
  await Promise.all([...nodes, late].map((node) => node.untilUp(UP_WITHIN_MS)));
});

test('probes share one room, which no list of rooms shows, and write nothing to the log of Janus', async () => {
  const janus = await startTestJanus();
  const deadlines = { pingEveryMs: 20 };
  const [one, two] = [nodeOn(janus, { deadlines }), nodeOn(janus, { deadlines })];
  await Promise.all([one.untilUp(UP_WITHIN_MS), two.untilUp(UP_WITHIN_MS)]);
  await eventually(async () => (await one.listFeeds(PROBE_ROOM)).length === 2);
  expect(await one.listRooms()).toEqual([]);
  const before = janus.log();
  for (let count = 0; count < 20; count += 1) await two.ping();
  expect(janus.log()).toBe(before);
});
