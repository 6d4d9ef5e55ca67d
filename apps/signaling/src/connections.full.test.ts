import { beforeAll, expect, test } from '@jest/globals';
import { spawnApp, type TestApp } from '@callplane/testing';
import { readFileSync } from 'node:fs';
import { startTestSignaling, type Joined, type TestSignaling } from './signaling.testkit.js';

const CONNECTIONS = 1000;
const PER_ROOM = 10;

let kit: TestSignaling;
let app: TestApp;
beforeAll(async () => {
  kit = await startTestSignaling();
  app = await spawnApp({ name: 'signaling', env: { DATABASE_URL: kit.databaseUrl, REDIS_URL: kit.redis.url } });
});

const residentBytes = () =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${app.pid}/status`, 'utf8'))?.[1] ?? 0) * 1024;

test('holds 1,000 connections with presence and messages in less than 200 kB of memory each', async () => {
  const before = residentBytes();
  const joined: Joined[] = [];
  const joins: number[] = [];
  for (let room = 0; room < CONNECTIONS / PER_ROOM; room++) {
    const roomId = await kit.newRoom();
    const entering = Array.from({ length: PER_ROOM }, async () => {
      const invited = await kit.invite(roomId);
      const startedAt = performance.now();
      const one = await kit.join(app.url, invited);
      joins.push(performance.now() - startedAt);
      return one;
    });
    joined.push(...(await Promise.all(entering)));
  }
  const bytes = (residentBytes() - before) / CONNECTIONS;
  const latencies: number[] = [];
  for (const { client, participantId } of joined) {
    client.on((message) => {
      if (message.type === 'message' && message.from !== participantId) {
        latencies.push(performance.now() - (message.data as { at: number }).at);
      }
    });
  }
  // In each round and room, one participant sends a message to the nine others, and the first one changes its metadata.
  for (let round = 0; round < 10; round++) {
    for (let first = 0; first < CONNECTIONS; first += PER_ROOM) {
      joined[first + round]!.client.send({ type: 'message', data: { at: performance.now() } });
      joined[first]!.client.send({ type: 'metadata', metadata: { round } });
    }
    await new Promise((resolve) => setTimeout(resolve, 1100));
  }
  const at = (values: number[], share: number) => values.sort((a, b) => a - b)[Math.floor(values.length * share)]!;
  process.stderr.write(
    `    measured: ${CONNECTIONS} connections, ${Math.round(bytes / 1024)} KiB each; join p50 ${at(joins, 0.5).toFixed(0)} ms, ` +
      `p99 ${at(joins, 0.99).toFixed(0)} ms; message p50 ${at(latencies, 0.5).toFixed(1)} ms, p99 ${at(latencies, 0.99).toFixed(1)} ms\n`,
  );
  expect(latencies).toHaveLength(10 * (CONNECTIONS / PER_ROOM) * (PER_ROOM - 1));
  expect(joined.every(({ client }) => client.closed === null)).toBe(true);
  expect(bytes).toBeLessThan(200_000);
}, 180_000);
