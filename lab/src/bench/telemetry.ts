import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { writeFileSync } from 'node:fs';
import autocannon from 'autocannon';
import { cpuMs, openStage, type Stage, type Started } from '../fleet/stage.js';
import { median, printHead, printRow } from './figures.js';

/**
 * What OpenTelemetry costs the API: CPU time of `GET /v1/rooms/{id}` without the code that begins spans, with it but
 * switched off (the default), and with an export to a collector. The processes take turns in short rounds, so that other
 * work of the machine meets all of them.
 */
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 15);
const REQUESTS = Number(process.env.BENCH_REQUESTS ?? 4000);
const CONNECTIONS = Number(process.env.BENCH_CONNECTIONS ?? 32);

export async function run() {
  const stage = await openStage();
  try {
    const apis = {
      'without the code': await stage.start('api', { NODE_OPTIONS: `--import ${withoutSpans(stage.dir)}` }),
      'off, the default': await stage.start('api'),
      on: await stage.start('api', { OTEL_EXPORTER_OTLP_ENDPOINT: await openCollector(stage) }),
    };
    const client = stage.clientOf(apis.on);
    report(await measure(apis, { path: `/v1/rooms/${await client.newRoom()}`, headers: client.headers }));
  } finally {
    await stage.close();
  }
}

/** A module that takes the call that begins a span out of the API while Node loads it. */
function withoutSpans(dir: string): string {
  const hooks = `export async function load(url, context, next) {
    const module = await next(url, context);
    if (!url.endsWith('/http/request-context.js')) return module;
    const source = String(module.source);
    if (!source.includes('spanOf(request, sent)')) throw new Error('The call that begins a span was not found');
    return { ...module, source: source.replace('spanOf(request, sent)', 'null') };
  }`;
  const file = join(dir, 'without-spans.mjs');
  const data = `data:text/javascript,${encodeURIComponent(hooks)}`;
  writeFileSync(file, `import { register } from 'node:module';\nregister(${JSON.stringify(data)});\n`);
  return pathToFileURL(file).href;
}

async function openCollector(stage: Stage): Promise<string> {
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => response.end());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stage.onClose(() => new Promise((resolve) => server.close(resolve)));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** CPU time of a request in microseconds, for each process and round. */
async function measure(apis: Record<string, Started>, request: { path: string; headers: Record<string, string> }) {
  const costs = Object.fromEntries(Object.keys(apis).map((name) => [name, [] as number[]]));
  // The first round compiles the code.
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [name, { pid, origin }] of Object.entries(apis)) {
      const before = cpuMs(pid);
      const url = `${origin}${request.path}`;
      const result = await autocannon({
        url,
        headers: request.headers,
        connections: CONNECTIONS,
        amount: REQUESTS,
      });
      if (result.non2xx > 0 || result.errors > 0) throw new Error(`${url}: ${result.non2xx} not 2xx`);
      if (round > 0) costs[name]!.push(((cpuMs(pid) - before) * 1000) / REQUESTS);
    }
  }
  return costs;
}

function report(costs: Record<string, number[]>) {
  const [base] = Object.values(costs);
  printHead('OpenTelemetry', 'CPU per request, µs', 'per round', 'against without, median of rounds');
  for (const [name, rounds] of Object.entries(costs)) {
    const ratio = median(rounds.map((cost, round) => cost / base![round]!));
    const range = `${Math.min(...rounds).toFixed(0)}-${Math.max(...rounds).toFixed(0)}`;
    printRow(name, median(rounds).toFixed(0), range, ratio.toFixed(3));
  }
  console.log(`\n${ROUNDS} rounds of ${REQUESTS} requests, load ${loadavg()[0]!.toFixed(1)}`);
}
