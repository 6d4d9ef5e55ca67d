/**
 * Several tenants on one real worker, with receivers that hang, respond slowly, or fail once: the cases that once delayed
 * a tenant's deliveries for seconds or minutes.
 */
import { createServer } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import { createTestTenant, type TestTenant } from '@callplane/testing';
import { beforeAll, expect, test } from '@jest/globals';
import { arrival, listen, startIsolationStack, startReceiver } from './webhooks-isolation.testkit.js';

/** How long another tenant is measured. */
const MEASURED_MS = 8000;

let stack: Awaited<ReturnType<typeof startIsolationStack>>;
beforeAll(async () => {
  stack = await startIsolationStack();
});

const LOADS: Record<string, (tenant: TestTenant) => Promise<void>> = {
  '50 endpoints that hang': async (tenant) => {
    // Accepts connections and never sends a byte.
    const url = await listen(createTcpServer((socket) => socket.on('error', () => undefined)));
    for (let n = 0; n < 50; n += 1) await stack.emit(tenant, await stack.newEndpoint(tenant, `${url}/${n}`), 8);
  },
  'one slow endpoint with 400 deliveries': async (tenant) => {
    await stack.emit(tenant, await stack.newEndpoint(tenant, (await startReceiver(1800)).url), 400);
  },
};

/** The lags in milliseconds of a proven endpoint, of the retries of endpoints that fail once, and of new endpoints. */
async function lagsOf(tenant: TestTenant) {
  const failing = await startReceiver(0, (attempt) => (attempt === 1 ? 503 : 200));
  const [proven, fresh] = [await startReceiver(), await startReceiver()];
  const lags = { proven: [] as number[], retries: [] as number[], fresh: [] as number[] };
  const toFresh = async () => {
    const atMs = performance.now();
    const id = await stack.emit(tenant, await stack.newEndpoint(tenant, fresh.url), 1);
    lags.fresh.push((await arrival(fresh, id)) - atMs);
  };
  const toFailing = async () => {
    const id = await stack.emit(tenant, await stack.newEndpoint(tenant, failing.url), 1);
    const failedAtMs = await arrival(failing, id);
    // From the due time without jitter.
    lags.retries.push((await arrival(failing, id, 2)) - failedAtMs - 5000);
  };
  const provenId = await stack.newEndpoint(tenant, proven.url);
  await arrival(proven, await stack.emit(tenant, provenId, 1));
  const startedAtMs = performance.now();
  const others = [toFresh(), toFailing()];
  while (performance.now() - startedAtMs < MEASURED_MS) {
    const atMs = performance.now();
    lags.proven.push((await arrival(proven, await stack.emit(tenant, provenId, 1))) - atMs);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  others.push(toFresh(), toFailing());
  await Promise.all(others);
  return lags;
}

test.each(Object.keys(LOADS))('%s of one tenant delay neither deliveries nor retries of another', async (load) => {
  await LOADS[load]!(await createTestTenant(stack.database));
  const { proven, retries, fresh } = await lagsOf(await createTestTenant(stack.database));
  const quantile = (share: number) => proven.sort((a, b) => a - b)[Math.ceil(proven.length * share) - 1];
  // The hostile load alone needs minutes. A busy machine exceeds these bounds only if the scheduler is at fault.
  expect(quantile(0.5)).toBeLessThan(5000);
  expect(quantile(0.95)).toBeLessThan(15_000);
  expect(Math.max(...retries)).toBeLessThan(20_000);
  expect(Math.max(...fresh)).toBeLessThan(30_000);
});

test('endpoints that hang now and then do not delay a quick endpoint of their environment', async () => {
  const tenant = await createTestTenant(stack.database);
  const quick = await startReceiver();
  const quickId = await stack.newEndpoint(tenant, quick.url);
  await arrival(quick, await stack.emit(tenant, quickId, 1));
  for (let n = 0; n < 2; n += 1) {
    let requests = n * 5;
    // Every tenth request hangs until the deadline of 2 s. The nine between make the endpoint look quick again.
    const server = createServer((_request, response) => {
      requests += 1;
      if (requests % 10 !== 0) response.end();
    });
    await stack.emit(tenant, await stack.newEndpoint(tenant, await listen(server)), 400);
  }
  const lags: number[] = [];
  const startedAtMs = performance.now();
  while (performance.now() - startedAtMs < MEASURED_MS) {
    const atMs = performance.now();
    lags.push((await arrival(quick, await stack.emit(tenant, quickId, 1))) - atMs);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  // In the slots of those endpoints, it would wait for several attempts that hang, one after another.
  expect(Math.max(...lags)).toBeLessThan(5000);
});
