import autocannon, { type Options } from 'autocannon';
import { freePort } from '@callplane/local-servers';
import { cpuMs } from './rooms-fleet.js';
import { median, openStage } from './stage.js';

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 7);
const SECONDS = Number(process.env.BENCH_SECONDS ?? 4);
const CONNECTIONS = Number(process.env.BENCH_CONNECTIONS ?? 32);
/** As few callers as a quiet deployment has: nothing to share. */
const FEW_CONNECTIONS = 2;

/**
 * REST: each route against the floor, interleaved, median of the rounds. Both sides run in separate processes and share
 * PostgreSQL, the machine and the load generator.
 */
export async function run() {
  const stage = await openStage();
  try {
    const floorPort = await freePort();
    const apiPort = await freePort();
    await stage.rtc('db', 'migrate');
    const { id: project } = await stage.rtc('projects', 'create', '--name', 'bench');
    const { id: environment } = await stage.rtc('environments', 'create', '--project', project, '--name', 'bench');
    const { key } = await stage.rtc('keys', 'create', '--env', environment, '--type', 'secret');
    const { pid: floorPid } = await stage.run(
      'lab/dist/bench/floor.js',
      { PORT: String(floorPort) },
      `http://127.0.0.1:${floorPort}/ready`,
    );
    const { pid } = await stage.run(
      'apps/api/dist/main.js',
      { PORT: String(apiPort), HOST: '127.0.0.1' },
      `http://127.0.0.1:${apiPort}/readyz`,
    );

    const floor = `http://127.0.0.1:${floorPort}`;
    const api = `http://127.0.0.1:${apiPort}`;
    const json = { 'content-type': 'application/json' };
    const authorized = { ...json, authorization: `Bearer ${key}` };
    const body = JSON.stringify({ name: 'Bench' });
    const create = async (url: string, headers: Record<string, string>) =>
      ((await (await fetch(url, { method: 'POST', headers, body })).json()) as { id: string }).id;
    const room = await create(`${api}/v1/rooms`, authorized);
    const row = await create(`${floor}/rooms`, json);

    const routes: Record<string, { floor: Options; api: Options; goal: number; goalOfFew: number }> = {
      'POST /v1/rooms': {
        floor: { url: `${floor}/rooms`, method: 'POST', headers: json, body },
        api: { url: `${api}/v1/rooms`, method: 'POST', headers: authorized, body },
        goal: 1,
        goalOfFew: 0.75,
      },
      'POST …/tokens': {
        floor: { url: `${floor}/rooms`, method: 'POST', headers: json, body },
        api: {
          url: `${api}/v1/rooms/${room}/tokens`,
          method: 'POST',
          headers: authorized,
          body: JSON.stringify({ participantName: 'Bench' }),
        },
        goal: 0.9,
        goalOfFew: 0.7,
      },
      'GET /v1/rooms/{id}': {
        floor: { url: `${floor}/rooms/${row}` },
        api: { url: `${api}/v1/rooms/${room}`, headers: authorized },
        goal: 1.1,
        goalOfFew: 0.8,
      },
    };
    console.log(`${ROUNDS} rounds of ${SECONDS} s, interleaved; medians\n`);
    console.log(
      '| connections | route | floor req/s | API req/s | ratio (min-max) | goal | API p50 / p99 ms | floor CPU µs | API CPU µs |',
    );
    console.log('| --- | --- | --- | --- | --- | --- | --- | --- | --- |');
    const table = [CONNECTIONS, FEW_CONNECTIONS].flatMap((count) =>
      Object.entries(routes).map(([name, route]) => ({ count, name, route })),
    );
    for (const { count, name, route } of table) {
      await measure(route.floor, 2, count);
      await measure(route.api, 2, count);
      const rounds = [];
      for (let round = 0; round < ROUNDS; round++) {
        const one = await measureWithCpu(Number(floorPid), route.floor, count);
        const two = await measureWithCpu(Number(pid), route.api, count);
        const { p50, p99, cpuUs } = two;
        const ratio = two.rate / one.rate;
        rounds.push({ floor: one.rate, api: two.rate, ratio, p50, p99, cpuUs, floorCpuUs: one.cpuUs });
      }
      const ratios = rounds.map(({ ratio }) => ratio);
      console.log(
        `| ${count} | ${name} | ${median(rounds.map((r) => r.floor)).toFixed(0)} | ${median(rounds.map((r) => r.api)).toFixed(0)} | ` +
          `${median(ratios).toFixed(3)} (${Math.min(...ratios).toFixed(3)}-${Math.max(...ratios).toFixed(3)}) | ${count === CONNECTIONS ? route.goal : route.goalOfFew} | ` +
          `${median(rounds.map((r) => r.p50)).toFixed(1)} / ${median(rounds.map((r) => r.p99)).toFixed(1)} | ` +
          `${median(rounds.map((r) => r.floorCpuUs)).toFixed(0)} | ${median(rounds.map((r) => r.cpuUs)).toFixed(0)} |`,
      );
    }

    const secondPort = await freePort();
    const second = { PORT: String(secondPort), HOST: '127.0.0.1' };
    await stage.run('apps/api/dist/main.js', second, `http://127.0.0.1:${secondPort}/readyz`);
    console.log('\n| route | one process req/s | two processes req/s | ratio |');
    console.log('| --- | --- | --- | --- |');
    for (const name of ['POST /v1/rooms', 'GET /v1/rooms/{id}']) {
      const route = routes[name];
      if (route === undefined) continue;
      const other = { ...route.api, url: route.api.url.replace(api, `http://127.0.0.1:${secondPort}`) };
      await measure(other, 2);
      const rounds = [];
      for (let round = 0; round < ROUNDS; round++) {
        const { rate: alone } = await measure(route.api, SECONDS);
        const half = CONNECTIONS / 2;
        const both = await Promise.all([measure(route.api, SECONDS, half), measure(other, SECONDS, half)]);
        rounds.push({ alone, both: both.reduce((sum, { rate }) => sum + rate, 0) });
      }
      const [alone, both] = [median(rounds.map((r) => r.alone)), median(rounds.map((r) => r.both))];
      const ratio = median(rounds.map((r) => r.both / r.alone));
      console.log(`| ${name} | ${alone.toFixed(0)} | ${both.toFixed(0)} | ${ratio.toFixed(2)} |`);
    }
  } finally {
    await stage.close();
  }
}

/** Measures the CPU time per request of a server as well. */
async function measureWithCpu(pid: number, options: Options, connections: number) {
  const before = cpuMs(pid);
  const result = await measure(options, SECONDS, connections);
  return { ...result, cpuUs: ((cpuMs(pid) - before) * 1000) / result.total };
}

async function measure(options: Options, seconds: number, connections: number = CONNECTIONS) {
  const result = await autocannon({ ...options, connections, duration: seconds });
  if (result.non2xx > 0 || result.errors > 0)
    throw new Error(`${options.url}: ${result.non2xx} not 2xx, ${result.errors} errors`);
  const { total } = result.requests;
  return { total, rate: total / result.duration, p50: result.latency.p50, p99: result.latency.p99 };
}
