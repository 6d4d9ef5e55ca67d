import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pLimit from 'p-limit';
import { cpuMs } from '../fleet/stage.js';
import { joinedClient, openClient, type Client } from './signaling-client.js';
import { median, ratioOf } from './figures.js';

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
const ROUND_MS = 3_000;
const CONNECTIONS = 20;
/** Messages in flight per connection. */
const WINDOW = 10;

interface Rate {
  /** Answers a second. */
  perSecond: number;
  /** CPU time of the server for each, in microseconds. */
  cpuUs: number;
}

/**
 * Messages against a bare echo: answers a second, and CPU time of the server for each.
 * @returns rows of a table.
 */
export async function messagesPerSecond(
  { url, pid }: { url: string; pid: number },
  newToken: (name: string) => Promise<string>,
): Promise<[what: string, value: string][]> {
  const echo = fork(join(import.meta.dirname, 'echo.js'));
  const [{ port }] = (await once(echo, 'message')) as [{ port: number }];
  const names = Array.from({ length: CONNECTIONS }, (_, index) => `client ${index}`);
  const floor = await pLimit(CONNECTIONS).map(names, () => openClient(`ws://127.0.0.1:${port}`));
  const gateway = await pLimit(CONNECTIONS).map(names, async (name) => joinedClient(url, await newToken(name)));
  // Each client sends to the next one: every message means one in, one out, and an answer.
  const looker = await openClient(url);
  const { participants } = await looker.enter({ type: 'join', token: await newToken('looker'), autoSubscribe: false });
  const ids = names.map((name) => participants.find((one: any) => one.name === name).participantId);
  const rounds: Record<'floor' | 'messages', Rate>[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const result = {
      floor: await rate(Number(echo.pid), floor, 'pong', () => ({ type: 'ping' })),
      messages: await rate(pid, gateway, 'ok', (index) => ({
        type: 'message',
        data: { text: 'x'.repeat(100) },
        to: [ids[(index + 1) % ids.length]],
      })),
    };
    // The first round warms up.
    if (round > 0) rounds.push(result);
  }
  for (const client of [...floor, ...gateway, looker]) client.close();
  echo.kill();
  const cost = (what: keyof (typeof rounds)[number]) => {
    const perSecond = median(rounds.map((one) => one[what].perSecond)).toFixed(0);
    return `${perSecond} /s, ${median(rounds.map((one) => one[what].cpuUs)).toFixed(1)} µs of CPU each`;
  };
  const ratio = ratioOf(rounds.map(({ messages, floor }) => messages.perSecond / floor.perSecond));
  return [
    ['bare `ws` echo', cost('floor')],
    ['`message` to another participant', `${cost('messages')}: ${ratio}`],
  ];
}

async function rate(pid: number, clients: Client[], answer: string, message: (index: number) => object): Promise<Rate> {
  let count = 0;
  let isOver = false;
  let sent = 0;
  for (const [index, client] of clients.entries()) {
    const send = () => client.send({ ...message(index), id: String(++sent) });
    client.on(answer, () => {
      count++;
      if (!isOver) send();
    });
    for (let under = 0; under < WINDOW; under++) send();
  }
  const [began, cpuBefore] = [performance.now(), cpuMs(pid)];
  await delay(ROUND_MS);
  isOver = true;
  const perSecond = (count * 1_000) / (performance.now() - began);
  const cpuUs = ((cpuMs(pid) - cpuBefore) * 1_000) / count;
  await delay(300);
  return { perSecond, cpuUs };
}
