import autocannon, { type Options } from 'autocannon';
import { cpuMs, onStage } from '../fleet/stage.js';
import { median, printHead, printRow, ratioOf } from './figures.js';

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 7);
const SECONDS = Number(process.env.BENCH_SECONDS ?? 4);
const CONNECTIONS = Number(process.env.BENCH_CONNECTIONS ?? 32);
/** As few callers as a quiet deployment has: nothing to share. */
const FEW_CONNECTIONS = 2;

interface Route {
  floor: Options;
  api: Options;
  goal: number;
  goalOfFew: number;
}

/**
 * REST: each route against the floor, interleaved, median of the rounds. Both sides run in separate processes and share
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
    const room = `${rooms}/${await client.newRoom()}`;
    const tokenBody = JSON.stringify({ participantName: 'Bench' });
    const routes: Record<string, Route> = {
      'POST /v1/rooms': { floor: create, api: { ...create, url: rooms }, goal: 1, goalOfFew: 0.75 },
      'POST …/tokens': {
        floor: create,
        api: { ...create, url: `${room}/tokens`, body: tokenBody },
        goal: 0.9,
        goalOfFew: 0.7,
      },
      'GET /v1/rooms/{id}': {
        floor: { url: `${create.url}/${row.id}` },
        api: { url: room, headers },
        goal: 1.1,
        goalOfFew: 0.8,
      },
    };
    console.log(`${ROUNDS} rounds of ${SECONDS} s, interleaved; medians\n`);
    const columns = ['floor req/s', 'API req/s', 'ratio (min-max)', 'goal', 'API p50 / p99 ms'];
    printHead('connections', 'route', ...columns, 'floor CPU µs', 'API CPU µs');
    for (const count of [CONNECTIONS, FEW_CONNECTIONS])
      for (const [name, route] of Object.entries(routes)) await compare(name, route, count, [floor.pid, api.pid]);
  });

/** The API against the floor. @param pids of the floor and the API. */
async function compare(name: string, route: Route, connections: number, [floorPid, apiPid]: [number, number]) {
  await measure(route.floor, 2, connections);
  await measure(route.api, 2, connections);
  const rounds: Record<'floor' | 'api', Awaited<ReturnType<typeof measureWithCpu>>>[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const floor = await measureWithCpu(floorPid, route.floor, connections);
    rounds.push({ floor, api: await measureWithCpu(apiPid, route.api, connections) });
  }
  const middle = (valueOf: (round: (typeof rounds)[number]) => number, digits = 0) =>
    median(rounds.map(valueOf)).toFixed(digits);
  printRow(
    connections,
    name,
    middle(({ floor }) => floor.rate),
    middle(({ api }) => api.rate),
    ratioOf(rounds.map(({ floor, api }) => api.rate / floor.rate)),
    connections === CONNECTIONS ? route.goal : route.goalOfFew,
    `${middle(({ api }) => api.p50, 1)} / ${middle(({ api }) => api.p99, 1)}`,
    middle(({ floor }) => floor.cpuUs),
    middle(({ api }) => api.cpuUs),
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
