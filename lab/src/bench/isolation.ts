import { setTimeout as delay } from 'node:timers/promises';
import { ApiClient } from '../client.js';
import { onStage } from '../fleet/stage.js';
import { percentile, printHead, printRow } from './figures.js';
import { openReceiver, openWebhooks } from './webhooks.js';

/** How long each load is measured, in seconds: at least four deadlines of a hanging receiver. */
const SECONDS = Number(process.env.BENCH_SECONDS ?? 45);
/** How often a new endpoint and one that fails get a delivery. */
const NEXT_MS = 5000;
/** Before the second attempt. */
const RETRY_MS = 5000;
/** How often the endpoint of the victim gets a delivery beside changing URLs, and how many URLs change a second. */
const VICTIM_MS = 4000;
const CHANGES_PER_SECOND = 4;
/** Measures only the loads whose name contains this. */
const ONLY = process.env.BENCH_LOAD ?? '';
const HANGING = { endpoints: 50, path: '/tarpit', deliveries: 8, isProven: false };
const SLOW = { endpoints: 1, path: '/wait/1800', deliveries: 400, isProven: false };
/** They stay below the second from which an endpoint has the slow lane. */
const ALMOST_SLOW = { endpoints: 50, path: '/wait/900', deliveries: 8, isProven: false };
/** They have answered at once until now: their first attempts hang in the fast lane. */
const TURNED = { ...HANGING, isProven: true };
/** The endpoints and deliveries of each hostile environment. */
const LOADS = [
  { name: '50 hanging endpoints', parts: [HANGING] },
  { name: 'one slow endpoint', parts: [SLOW] },
  { name: 'both', parts: [HANGING, SLOW] },
  { name: '50 endpoints at 0.9 s', parts: [ALMOST_SLOW] },
  { name: '50 proven endpoints that hang', parts: [TURNED] },
].filter(({ name }) => name.includes(ONLY));
const CHANGING = `${HANGING.endpoints} hanging endpoints, ${CHANGES_PER_SECOND} URLs changed a second`;

/**
 * Tenants next to each other: the service that one worker gives a tenant while 1, 10 or 100 other environments have
 * hanging endpoints (50 each), an endpoint that answers after 1.8 s (with 400 deliveries), 50 that answer after 0.9 s, or 50
 * that begin to hang.
 * Then a tenant whose receiver takes 1.2 s, beside one that changes the URLs of its hanging endpoints all the time.
 */
export async function run() {
  printHead('environments with … each', 'proven p95', 'retry after a 503, at most', 'new endpoint, at most');
  for (const environments of [1, 10, 100]) for (const load of LOADS) await measure(environments, load);
  printRow('goal', '2 s', '10 s after due', '15 s');
  if (!CHANGING.includes(ONLY)) return;
  console.log();
  printHead('beside', 'receiver of 1.2 s, p95', 'at most', 'new endpoint, at most');
  await measureSlow();
  printRow('goal', '10 s', '', '15 s');
}

/** The victim's figures in the slow lane, in which a changed URL has its first attempts. */
function measureSlow(): Promise<void> {
  return onStage(async (stage) => {
    const receiver = await openReceiver(stage);
    const { newEndpoint, emit } = openWebhooks(stage);
    const api = await stage.start('api');
    await stage.start('webhook-worker');
    const hostile = await stage.operator.newTenant('hostile');
    const { environmentId } = hostile;
    const client = new ApiClient(api.origin, hostile.key);
    const hanging: string[] = [];
    for (let at = 0; at < HANGING.endpoints; at += 1) {
      hanging.push(await newEndpoint(`${receiver.url}${HANGING.path}`, { isProven: false, environmentId }));
      await emit(hanging.slice(-1), HANGING.deliveries, { environmentId });
    }
    let changes = 0;
    const change = async () => {
      changes += 1;
      const url = `${receiver.url}${HANGING.path}?${changes}`;
      await client.call('PATCH', `/v1/webhooks/${hanging[changes % hanging.length]}`, { url });
    };
    const victim = await newEndpoint(`${receiver.url}/wait/1200`);
    const lags: Record<'victim' | 'fresh', Promise<number>[]> = { victim: [], fresh: [] };
    const lagOf = async (deliveryId: string, sentMs: number) => (await receiver.arrivalOf(deliveryId)) - sentMs;
    const startedAtMs = performance.now();
    const rounds = Math.floor((SECONDS * 1000) / VICTIM_MS);
    for (let round = 0; round < rounds; round += 1) {
      const sentMs = performance.timeOrigin + performance.now();
      lags.victim.push(lagOf(await emit(victim), sentMs));
      const fresh = await newEndpoint(`${receiver.url}/fresh`, { isProven: false });
      lags.fresh.push(lagOf(await emit(fresh), sentMs));
      while (performance.now() - startedAtMs < (round + 1) * VICTIM_MS) {
        await change();
        await delay(1000 / CHANGES_PER_SECOND);
      }
    }
    const victims = await Promise.all(lags.victim);
    const news = await Promise.all(lags.fresh);
    const s = (values: number[], share: number) => `${(percentile(values, share) / 1000).toFixed(1)} s`;
    const few = `${s(victims, 0.95)} of ${victims.length}`;
    printRow(`one tenant with ${CHANGING}`, few, s(victims, 1), s(news, 1));
  });
}

function measure(environments: number, { name, parts }: (typeof LOADS)[number]): Promise<void> {
  return onStage(async (stage) => {
    const receiver = await openReceiver(stage);
    const { newEnvironment, newEndpoint, emit } = openWebhooks(stage);
    await stage.start('webhook-worker');
    const send = async (environmentId: string, path: string, count: number, isProven = false) => {
      const endpointId = await newEndpoint(`${receiver.url}${path}`, { isProven, environmentId });
      return emit(endpointId, count, { environmentId });
    };
    for (let n = 0; n < environments; n += 1) {
      const hostile = await newEnvironment();
      for (const { endpoints, path, deliveries, isProven } of parts)
        for (let at = 0; at < endpoints; at += 1) await send(hostile, path, deliveries, isProven);
    }
    const own = stage.tenant.environmentId;
    const proven = await newEndpoint(`${receiver.url}/proven`);
    const nowMs = () => performance.timeOrigin + performance.now();
    const lags: Record<'proven' | 'retries' | 'fresh', number[]> = { proven: [], retries: [], fresh: [] };
    const others: Promise<unknown>[] = [];
    await receiver.arrivalOf(await emit(proven));
    const startedAtMs = nowMs();
    for (let nextMs = 0; nowMs() - startedAtMs < SECONDS * 1000;) {
      const atMs = nowMs();
      if (atMs - startedAtMs >= nextMs) {
        nextMs += NEXT_MS;
        const fresh = await send(own, '/fresh', 1);
        others.push(receiver.arrivalOf(fresh).then((arrivedMs) => lags.fresh.push(arrivedMs - atMs)));
        const failing = await send(own, '/once503', 1);
        const retry = async () => {
          const firstMs = await receiver.arrivalOf(failing);
          lags.retries.push((await receiver.arrivalOf(failing, 2)) - firstMs - RETRY_MS);
        };
        others.push(retry());
      }
      const sentMs = nowMs();
      lags.proven.push((await receiver.arrivalOf(await emit(proven))) - sentMs);
      await delay(200);
    }
    await Promise.all(others);
    const cell = (values: number[], share: number) => `${percentile(values, share).toFixed(0)} ms of ${values.length}`;
    const cells = [cell(lags.proven, 0.95), cell(lags.retries, 1), cell(lags.fresh, 1)];
    printRow(`${environments} with ${name}`, ...cells);
  });
}
