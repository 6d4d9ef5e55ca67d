import autocannon, { type Options } from 'autocannon';
import { cpuMs, onStage } from '../fleet/stage.js';
import { median, printHead, printRow, ratioOf } from './figures.js';

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 7);
const SECONDS = Number(process.env.BENCH_SECONDS ?? 4);
const CONNECTIONS = Number(process.env.BENCH_CONNECTIONS ?? 32);
/** As few callers as a quiet deployment has: nothing to share. */
const FEW_CONNECTIONS = 2;

type Side = 'floor' | 'same' | 'api';

interface Route extends Record<Side, Options> {
  goal: number;
  goalOfFew: number;
}

/**
 * REST: each route against the floors, interleaved, median of the rounds. Both sides run in separate processes and share
 * PostgreSQL, the machine and the load generator.
 */
export const run = () =>
  onStage(async (stage) => {
    const floor = await stage.startFloor();
    const api = await stage.start('api');
    const client = stage.clientOf(api);
    const { headers } = client;
    const body = JSON.stringify({ name: 'Bench' });
    const create: Options = { url: `${floor.origin}/rooms`, method: 'POST', headers, body };
    const row = (await (await fetch(create.url, { method: 'POST', headers, body })).json()) as { id: string };
    const rooms = `${api.origin}/v1/rooms`;
    const id = await client.newRoom();
    const room = `${rooms}/${id}`;
    const same = `${floor.origin}/same/rooms`;
    const tokenBody = JSON.stringify({ participantName: 'Bench' });
    const routes: Record<string, Route> = {
      'POST /v1/rooms': {
        floor: create,
        same: { ...create, url: same },
        api: { ...create, url: rooms },
        goal: 1,
        goalOfFew: 0.75,
      },
      'POST …/tokens': {
        floor: create,
        same: { ...create, url: `${same}/${id}/tokens` },
        api: { ...create, url: `${room}/tokens`, body: tokenBody },
        goal: 0.9,
        goalOfFew: 0.7,
      },
      'GET /v1/rooms/{id}': {
        floor: { url: `${create.url}/${row.id}` },
        same: { url: `${same}/${id}` },
        api: { url: room, headers },
        goal: 1.1,
        goalOfFew: 0.8,
      },
    };
    console.log(`${ROUNDS} rounds of ${SECONDS} s, interleaved; medians\n`);
    const rates = ['floor req/s', 'same statements req/s', 'API req/s'];
    const ratios = ['of the floor', 'of the same statements', 'goal'];
    printHead('connections', 'route', ...rates, ...ratios, 'API p50 / p99 ms', 'CPU µs of floor, same, API');
    for (const count of [CONNECTIONS, FEW_CONNECTIONS])
      for (const [name, route] of Object.entries(routes)) await compare(name, route, count, [floor.pid, api.pid]);
  });

/** The API against the floors. @param pids of the floors and the API. */
async function compare(name: string, route: Route, connections: number, [floorPid, apiPid]: [number, number]) {
  const sides = { floor: floorPid, same: floorPid, api: apiPid };
  const measured: Record<Side, Awaited<ReturnType<typeof measureWithCpu>>[]> = { floor: [], same: [], api: [] };
  for (const side of Object.keys(sides) as Side[]) await measure(route[side], 2, connections);
  for (let round = 0; round < ROUNDS; round++)
    for (const [side, pid] of Object.entries(sides) as [Side, number][])
      measured[side].push(await measureWithCpu(pid, route[side], connections));
  const { floor, same, api } = measured;
  const against = (other: typeof api) => ratioOf(api.map(({ rate }, round) => rate / (other[round]?.rate ?? NaN)));
  const middle = (side: typeof api, figure: keyof (typeof api)[number], digits = 0) =>
    median(side.map((one) => one[figure])).toFixed(digits);
  printRow(
    connections,
    name,
    ...[floor, same, api].map((side) => middle(side, 'rate')),
    against(floor),
    against(same),
    connections === CONNECTIONS ? route.goal : route.goalOfFew,
    `${middle(api, 'p50', 1)} / ${middle(api, 'p99', 1)}`,
    [floor, same, api].map((side) => middle(side, 'cpuUs')).join(', '),
  );
}

/** Measures the CPU time per request of a server as well. */
async function measureWithCpu(pid: number, options: Options, connections: number) {
  const before = cpuMs(pid);
  const result = await measure(options, SECONDS, connections);
  return { ...result, cpuUs: ((cpuMs(pid) - before) * 1000) / result.total };
}

/** Sends requests over some connections for some time. */
async function measure(options: Options, seconds: number, connections: number) {
  const result = await autocannon({ ...options, connections, duration: seconds });
  if (result.non2xx > 0 || result.errors > 0)
    throw new Error(`${options.url}: ${result.non2xx} not 2xx, ${result.errors} errors`);
  const { total } = result.requests;
  return { total, rate: total / result.duration, p50: result.latency.p50, p99: result.latency.p99 };
}
