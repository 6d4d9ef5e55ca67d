import { expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import { startStack, type Answer } from '../faults/faults.testkit.js';
import { LEASE_MS, promote, startPostgresPair } from './failover.testkit.js';

/** The cases with load, calls, webhooks and Redis are in failover.full.test.ts. */
test('nothing acknowledged is lost when PostgreSQL is killed and its standby promoted, and no app is restarted', async () => {
  const { primary, standby, url } = await startPostgresPair();
  const stack = await startStack(url);
  const [api, worker] = await Promise.all([stack.spawnApi(), stack.spawnWorker({ LEASE_MS })]);
  const create = () => stack.call(api, 'POST', '/v1/rooms', { body: { name: 'Room' } });
  const before = [await create(), await create(), await create()].map(({ body }) => String(body.id));
  const ended = await stack.call(api, 'DELETE', `/v1/rooms/${before[0]}`, { prefer: 'respond-async' });
  expect(ended.status).toBe(202);

  primary.kill('SIGKILL');
  const refused: Answer[] = [await create()];
  expect(refused[0]).toMatchObject({ status: 503, body: { error: { code: 'UNAVAILABLE' } } });
  await promote(standby);
  const created = await eventually(async () => {
    const answer = await create();
    if (answer.status === 201) return answer;
    refused.push(answer);
    return null;
  });

  expect(new Set(refused.map(({ status }) => status))).toEqual(new Set([503]));
  const after = String(created.body.id);
  for (const id of [...before, after]) {
    expect((await stack.call(api, 'GET', `/v1/rooms/${id}`)).status).toBe(200);
  }
  expect([202, 204]).toContain((await stack.call(api, 'DELETE', `/v1/rooms/${after}`)).status);
  await stack.allCompleted([before[0]!, after]);
  for (const app of [api, worker]) {
    expect(await Promise.race([app.exited, Promise.resolve('runs')])).toBe('runs');
    expect(app.output()).not.toContain('process failed');
  }
});
