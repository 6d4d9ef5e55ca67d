import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import { measured } from '../faults/faults.testkit.js';
import { endStage, promote, startStage, survive, type Stage } from './failover.testkit.js';

/** How long a frozen server stays frozen. */
const FROZEN_MS = 30_000;
/** How long a promotion takes if a person makes it. */
const LATE_MS = 20_000;
const PLACES = 3;

let stage: Stage | undefined;

afterEach(async () => {
  const ended = stage;
  stage = undefined;
  if (ended !== undefined) await endStage(ended);
});

const freeze = async (...servers: { freeze(): void; thaw(): void }[]) => {
  for (const server of servers) server.freeze();
  await delay(FROZEN_MS);
  for (const server of servers) server.thaw();
};
const masterOf = async ({ redis }: Stage) => {
  const master = await redis.master();
  if (master === null) throw new Error('no master');
  return master;
};

/** Each resolves when the servers can be reached again: from then on the recovery is measured. */
const FAULTS: Record<string, (stage: Stage) => Promise<void>> = {
  'PostgreSQL is killed, and its standby promoted': async ({ primary, standby }) => {
    primary.kill('SIGKILL');
    await promote(standby);
  },
  // Longer than the grace of a session: no gateway can write a heartbeat meanwhile.
  'PostgreSQL is killed, and its standby promoted 20 s later': async ({ primary, standby }) => {
    primary.kill('SIGKILL');
    await delay(LATE_MS);
    await promote(standby);
  },
  'the master of Redis is killed': async (on) => {
    const killed = await masterOf(on);
    killed.kill('SIGKILL');
    await promoted(on, killed.port);
  },
  'both are killed at once': async (on) => {
    const killed = await masterOf(on);
    on.primary.kill('SIGKILL');
    killed.kill('SIGKILL');
    await promote(on.standby);
    await promoted(on, killed.port);
  },
  'PostgreSQL is frozen for 30 s': ({ primary }) => freeze(primary),
  'PostgreSQL is frozen, and its standby promoted': async ({ primary, standby }) => {
    primary.freeze();
    await promote(standby);
  },
  'the synchronous standby is frozen for 30 s': ({ standby }) => freeze(standby),
  'the master of Redis is frozen for 30 s': async (on) => freeze(await masterOf(on)),
  'both are frozen for 30 s': async (on) => freeze(on.primary, await masterOf(on)),
};

/** Resolves when the Sentinels name another master. */
async function promoted({ redis }: Stage, before: number): Promise<void> {
  while ((await redis.master())?.port === before) await delay(50);
}

test.each(Object.keys(FAULTS))('nothing is lost when %s', async (name) => {
  stage = await startStage();
  const fault = FAULTS[name]!;
  const startedAtMs = performance.now();
  let awayMs = 0;
  const on = stage;
  const { recoveredMs, ...counts } = await survive(on, PLACES, async () => {
    const beganAtMs = performance.now();
    await fault(on);
    awayMs = performance.now() - beganAtMs;
  });
  measured({ fault: name, 'away ms': awayMs, ...recoveredMs, ...counts, 'whole ms': performance.now() - startedAtMs });
  expect(counts.rooms).toBeGreaterThan(0);
});

test('a POST that got 503 while the standby was away gives the same room when it is repeated', async () => {
  stage = await startStage();
  const { stack, api, standby } = stage;
  const post = () => stack.call(api, 'POST', '/v1/rooms', { body: { name: 'Once' }, idempotencyKey: 'once' });
  standby.freeze();
  expect((await post()).status).toBe(503);
  // Reads go on meanwhile.
  expect((await stack.call(api, 'GET', '/v1/rooms')).status).toBe(200);
  expect((await fetch(`${api.url}/readyz`)).status).toBe(200);
  // The transaction of the first one still holds the lock of the key.
  expect(await post()).toMatchObject({ status: 409, body: { error: { code: 'IDEMPOTENCY_CONFLICT' } } });
  standby.thaw();
  const answer = await eventually(async () => {
    const one = await post();
    return [409, 503].includes(one.status) ? null : one;
  });
  expect(answer.status).toBe(201);
  expect(await stack.database.prisma.room.findMany({ select: { id: true } })).toEqual([{ id: answer.body.id }]);
});
