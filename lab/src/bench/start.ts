import http from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '@callplane/local-servers';
import { cpuMs, onStage } from '../fleet/stage.js';
import { median, printHead, printRow } from './figures.js';

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
const APPS = ['api', 'webhook-worker', 'cleanup-worker'] as const;
const REQUESTS = 5200;
const PER_SECOND = 650;
/** When the API is killed, or PostgreSQL is stopped, in milliseconds. */
const KILLED_AFTER_MS = 2000;
const AWAY = { ms: 1000, requests: 1200, perSecond: 200 };

/** How long apps take from their start until they are ready, and what a killed API or PostgreSQL costs callers. */
export const run = () =>
  onStage(async (stage) => {
    printHead('what', 'value', 'goal');
    for (const app of APPS) {
      const times = [];
      const costs = [];
      for (let round = 0; round < ROUNDS; round++) {
        const startedMs = performance.now();
        const { pid, stop } = await stage.start(app);
        times.push(performance.now() - startedMs);
        costs.push(cpuMs(pid));
        await stop();
      }
      const cost = `${median(costs).toFixed(0)} ms of processor time`;
      printRow(`start of the ${app} until ready`, `${median(times).toFixed(0)} ms, ${cost}`, '');
    }
    const port = await freePort();
    const env = { PORT: String(port) };
    const api = await stage.start('api', env);
    const answers = createRooms(port, stage.tenant.key, REQUESTS, PER_SECOND);
    await delay(KILLED_AFTER_MS);
    const killedMs = performance.now();
    process.kill(api.pid, 'SIGKILL');
    await api.stop();
    await stage.start('api', env);
    const readyMs = performance.now() - killedMs;
    const refusedOf = (all: number[]) => all.filter((status) => status !== 201).length;
    const refused = refusedOf(await answers);
    printRow(`API killed at ${PER_SECOND} requests a second: ready again`, `${readyMs.toFixed(0)} ms`, '800 ms');
    printRow(`requests refused, of ${REQUESTS}`, refused, 900);
    const waiting = createRooms(port, stage.tenant.key, AWAY.requests, AWAY.perSecond);
    await delay(KILLED_AFTER_MS);
    await stage.restartPostgres(AWAY.ms);
    const without = `PostgreSQL away for ${AWAY.ms} ms at ${AWAY.perSecond} requests a second`;
    printRow(`${without}: refused, of ${AWAY.requests}`, refusedOf(await waiting), 0);
  });

/** Creates rooms at an even rate. @returns the status of each answer; 0 without one. */
async function createRooms(port: number, key: string, amount: number, perSecond: number): Promise<number[]> {
  const agent = new http.Agent({ keepAlive: true });
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const create = () =>
    new Promise<number>((resolve) => {
      const options = { port, path: '/v1/rooms', method: 'POST', agent, headers };
      const request = http.request(options, (response) => {
        response.resume().once('end', () => resolve(response.statusCode ?? 0));
      });
      request.once('error', () => resolve(0)).end('{"name":"Bench"}');
    });
  const startedMs = performance.now();
  const answers: Promise<number>[] = [];
  while (answers.length < amount) {
    answers.push(create());
    await delay(Math.max(0, startedMs + (answers.length * 1000) / perSecond - performance.now()));
  }
  return Promise.all(answers);
}
