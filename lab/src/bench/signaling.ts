import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import wrtc from '@roamhq/wrtc';
import { WebSocket } from 'ws';
import { connect } from '@callplane/client-js';
import { freePort, hostIPv4, startJanus } from '@callplane/local-servers';
import { each, openClient, percentile, type Client } from './signaling-client.js';
import { cpuMs } from './rooms-fleet.js';
import { median, openStage } from './stage.js';

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
const ROUND_MS = 3_000;
const CONNECTIONS = 20;
/** Messages in flight per connection. */
const WINDOW = 10;
const JOINS = 100;
const FIRST_FRAMES = 20;
const CROWD = 1_000;
const CROWD_ROOM = 10;
const EVERYTHING = [
  'room:join',
  'audio:publish',
  'video:publish',
  'screen:publish',
  'messages:send',
  'metadata:update',
];

/** Joins, messages against a bare echo, the end of rooms, and a thousand connections on one gateway. */
export async function run() {
  const stage = await openStage();
  try {
    const bench = await openBench(stage);
    console.log('| what | value |\n| --- | --- |');
    await joinLatency(bench);
    await firstFrames(bench);
    await messagesPerSecond(bench);
    for (const count of [10, 100, 1_000]) await roomEnd(bench, count);
    await crowd(bench);
  } finally {
    await stage.close();
  }
}

type Bench = Awaited<ReturnType<typeof openBench>>;

/** @param moreEnv of all apps */
export async function openBench(stage: Awaited<ReturnType<typeof openStage>>, moreEnv: Record<string, string> = {}) {
  const secrets = { apiSecret: 'bench-api-secret', adminKey: 'bench-admin-key', adminSecret: 'bench-admin-secret' };
  const janus = await startJanus({
    dir: join(stage.dir, 'janus'),
    host: hostIPv4(),
    rtpPortMin: 30_000,
    rtpPortMax: 30_999,
    wsPort: await freePort(),
    ...secrets,
  });
  stage.onClose(() => janus.stop());
  await stage.rtc('db', 'migrate');
  const { id: project } = await stage.rtc('projects', 'create', '--name', 'bench');
  const { id: environment } = await stage.rtc('environments', 'create', '--project', project, '--name', 'bench');
  const { key } = await stage.rtc('keys', 'create', '--env', environment, '--type', 'secret');
  const media = {
    MEDIA_NODES: `one=${janus.url}`,
    MEDIA_API_SECRET: secrets.apiSecret,
    MEDIA_ADMIN_KEY: secrets.adminKey,
    // Otherwise the benchmark would measure the rate limits.
    RATE_LIMIT_SIGNALING_PER_SECOND: '0',
    RATE_LIMIT_MESSAGES_PER_SECOND: '0',
    RATE_LIMIT_METADATA_PER_SECOND: '0',
  };
  const start = async (app: string, portName: string) => {
    const port = String(await freePort());
    const env = { ...media, ...moreEnv, [portName]: port, HOST: '127.0.0.1', HEALTH_HOST: '127.0.0.1' };
    const child = await stage.run(`apps/${app}/dist/main.js`, env, `http://127.0.0.1:${port}/readyz`);
    return { child, origin: `http://127.0.0.1:${port}` };
  };
  const api = await start('api', 'PORT');
  await start('cleanup-worker', 'HEALTH_PORT');
  const signaling = await start('signaling', 'PORT');
  const call = async (method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
    const response = await fetch(`${api.origin}${path}`, init);
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`);
    return text === '' ? null : JSON.parse(text);
  };
  return {
    call,
    url: urlOf(signaling.origin),
    pid: Number(signaling.child.pid),
    janusPid: janus.pid,
    /** Starts another gateway, without earlier connections. */
    startGateway: async () => {
      const { child, origin } = await start('signaling', 'PORT');
      return { pid: child.pid, url: urlOf(origin) };
    },
    newRoom: async () => String((await call('POST', '/v1/rooms', { name: 'bench', maxParticipants: 1_000 })).id),
    token: async (room: string, name: string) =>
      String(
        (await call('POST', `/v1/rooms/${room}/tokens`, { participantName: name, permissions: EVERYTHING })).token,
      ),
  };
}

async function joinLatency({ newRoom, token, url }: Bench) {
  const room = await newRoom();
  const took = [];
  for (let index = 0; index < JOINS; index++) {
    const ticket = await token(room, `client ${index}`);
    const began = performance.now();
    const client = await openClient(url);
    await client.join(ticket);
    took.push(performance.now() - began);
    // Each client joins an empty room: the crowd measures the effect of a room's size.
    client.send({ type: 'leave' });
    await client.closed;
  }
  row('token to welcome, one after the other', spread(took));
}

async function firstFrames({ newRoom, token, url }: Bench) {
  const room = await newRoom();
  const platform = { WebSocket, RTCPeerConnection: wrtc.RTCPeerConnection } as any;
  const { RTCVideoSink, RTCVideoSource } = wrtc.nonstandard;
  const source = new RTCVideoSource();
  const [width, height] = [320, 240];
  const data = new Uint8Array((width * height * 3) / 2);
  let shade = 0;
  const filming = setInterval(
    () => source.onFrame({ width, height, data: data.fill((shade = (shade + 16) % 256)) }),
    40,
  );
  const publisher = await connect({ url, token: await token(room, 'publisher'), platform });
  const track = source.createTrack();
  await publisher.publish(track, { source: 'camera' });
  const took = [];
  for (let index = 0; index < FIRST_FRAMES; index++) {
    const ticket = await token(room, `viewer ${index}`);
    const began = performance.now();
    const viewer = await connect({ url, token: ticket, platform });
    await new Promise((resolve) => {
      const watch = ({ mediaStreamTrack }: any) => {
        const sink = new RTCVideoSink(mediaStreamTrack);
        sink.onframe = () => {
          sink.stop();
          resolve(undefined);
        };
      };
      viewer.on('trackSubscribed', watch);
    });
    took.push(performance.now() - began);
    await viewer.leave();
  }
  clearInterval(filming);
  track.stop();
  await publisher.leave();
  row('token to first frame (Node, 320×240)', spread(took));
}

/** Messages and pings against a bare echo: answers a second, and CPU time of the server for each. */
export async function messagesPerSecond({
  newRoom,
  token,
  url,
  pid,
}: Pick<Bench, 'newRoom' | 'token' | 'url' | 'pid'>): Promise<void> {
  const echo = fork(join(import.meta.dirname, 'echo.js'));
  const [{ port }] = (await once(echo, 'message')) as [{ port: number }];
  const room = await newRoom();
  const names = Array.from({ length: CONNECTIONS }, (_, index) => `client ${index}`);
  const floor = await each(names, CONNECTIONS, () => openClient(`ws://127.0.0.1:${port}`));
  const gateway = await each(names, CONNECTIONS, async (name) => {
    const client = await openClient(url);
    await client.join(await token(room, name));
    return client;
  });
  // Each client sends to the next one: every message means one in, one out, and an answer.
  const members = (await (await openClient(url)).join(await token(room, 'looker'))).participants;
  const ids = names.map((name) => members.find((one: any) => one.name === name).participantId);
  const rounds: Record<'floor' | 'pings' | 'messages', Rate>[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const result = {
      floor: await rate(Number(echo.pid), floor, 'pong', () => ({ type: 'ping' })),
      pings: await rate(pid, gateway, 'pong', () => ({ type: 'ping' })),
      messages: await rate(pid, gateway, 'ok', (index) => ({
        type: 'message',
        data: { text: 'x'.repeat(100) },
        to: [ids[(index + 1) % ids.length]],
      })),
    };
    // The first round warms up.
    if (round > 0) rounds.push(result);
  }
  const cost = (what: 'floor' | 'pings' | 'messages') => {
    const perSecond = median(rounds.map((one) => one[what].perSecond)).toFixed(0);
    return `${perSecond} /s, ${median(rounds.map((one) => one[what].cpuUs)).toFixed(1)} µs of CPU each`;
  };
  const against = (what: 'pings' | 'messages') => {
    const ratios = rounds.map((one) => one[what].perSecond / one.floor.perSecond);
    const range = `${Math.min(...ratios).toFixed(2)}-${Math.max(...ratios).toFixed(2)}`;
    return `${cost(what)}: ${median(ratios).toFixed(2)} (${range})`;
  };
  row('bare `ws` echo', cost('floor'));
  row('`ping` answered by the gateway', against('pings'));
  row('`message` to another participant', against('messages'));
  for (const client of [...floor, ...gateway]) client.close();
  echo.kill();
}

interface Rate {
  /** Answers a second. */
  perSecond: number;
  /** CPU time of the server for each, in microseconds. */
  cpuUs: number;
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
  await new Promise((resolve) => setTimeout(resolve, ROUND_MS));
  isOver = true;
  const perSecond = (count * 1_000) / (performance.now() - began);
  const cpuUs = ((cpuMs(pid) - cpuBefore) * 1_000) / count;
  await new Promise((resolve) => setTimeout(resolve, 300));
  return { perSecond, cpuUs };
}

async function roomEnd({ call, newRoom, token, url }: Bench, count: number) {
  const room = await newRoom();
  const clients = await each(Array.from({ length: count }), 20, async (_, index) => {
    // Clients with version 1 may only join rooms of up to 100.
    const client = await openClient(url, 'callplane.v2');
    await client.join(await token(room, `client ${index}`));
    return client;
  });
  const began = performance.now();
  const everybodyOut = Promise.all(clients.map(({ closed }) => closed)).then(() => performance.now() - began);
  await call('DELETE', `/v1/rooms/${room}`);
  for (;;) {
    const { status } = await call('GET', `/v1/rooms/${room}/runtime-operation`);
    if (status === 'completed') break;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const completed = performance.now() - began;
  row(
    `\`room.end\` with ${count} participants`,
    `completed after ${completed.toFixed(0)} ms, everybody disconnected after ${(await everybodyOut).toFixed(0)} ms`,
  );
}

async function crowd({ newRoom, token, startGateway }: Bench) {
  const { pid, url } = await startGateway();
  const rooms = await each(Array.from({ length: CROWD / CROWD_ROOM }), 10, () => newRoom());
  const tokens = await each(Array.from({ length: CROWD }), 10, (_, index) =>
    token(rooms[index % rooms.length] as string, `client ${index}`),
  );
  const before = memoryOf(pid);
  const clients = await each(tokens, 20, async (ticket) => {
    const client = await openClient(url);
    await client.join(ticket);
    return client;
  });
  const after = memoryOf(pid);
  row(
    `memory for each of ${CROWD} connections`,
    `${((after - before) / CROWD).toFixed(0)} KiB (${(after / 1024).toFixed(0)} MiB in all)`,
  );

  // Each client sends its room a message every ten seconds and changes its metadata every twenty.
  const messages: number[] = [];
  const presence: number[] = [];
  for (const client of clients) {
    client.on('message', ({ data }) => messages.push(performance.now() - data.at));
    client.on('participantUpdated', ({ participant }) => presence.push(performance.now() - participant.metadata.at));
  }
  const [seconds, ticksPerSecond] = [15, 20];
  for (let tick = 0, at = performance.now(); tick < seconds * ticksPerSecond; tick++) {
    for (let index = 0; index < CROWD; index++) {
      const client = clients[index];
      if (index % (10 * ticksPerSecond) === tick % (10 * ticksPerSecond)) {
        client?.send({ type: 'message', data: { at: performance.now() } });
      }
      if (index % (20 * ticksPerSecond) === tick % (20 * ticksPerSecond)) {
        client?.send({ type: 'metadata', metadata: { at: performance.now() } });
      }
    }
    at += 1_000 / ticksPerSecond;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, at - performance.now())));
  }
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  const rateOf = (all: number[]) => `${(all.length / seconds).toFixed(0)} /s received`;
  row(
    `messages in ${rooms.length} rooms of ${CROWD_ROOM}: sent to received`,
    `${spread(messages)}, ${rateOf(messages)}`,
  );
  row('changes of metadata: sent to seen', `${spread(presence)}, ${rateOf(presence)}`);
  for (const client of clients) client.close();
}

function urlOf(origin: string) {
  return `${origin.replace('http', 'ws')}/v1/signaling`;
}

/** @returns resident memory in KiB */
function memoryOf(pid: number | undefined) {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}

function spread(values: number[]) {
  const [p50, p95, p99] = [0.5, 0.95, 0.99].map((share) => percentile(values, share).toFixed(1));
  return `median ${p50} ms, p95 ${p95} ms, p99 ${p99} ms`;
}

function row(what: string, value: string) {
  console.log(`| ${what} | ${value} |`);
}
