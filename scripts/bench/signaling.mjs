import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import wrtc from '@roamhq/wrtc';
import { WebSocket } from 'ws';
import { connect } from '@callplane/client-js';
import { freePort, hostIPv4, startJanus } from '@callplane/local-servers';
import { root } from '../lib/files.mjs';
import { each, openClient, percentile } from './signaling-client.mjs';
import { median, openStage } from './stage.mjs';

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
const ROUND_MS = 3_000;
const CONNECTIONS = 20;
/** Messages of one connection that are under way at once. */
const WINDOW = 10;
const JOINS = 100;
const FIRST_FRAMES = 20;
const CROWD = 1_000;
const CROWD_ROOM = 10;
const EVERYTHING = ['room:join', 'audio:publish', 'video:publish', 'messages:send', 'metadata:update'];

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

/** @typedef {Awaited<ReturnType<typeof openBench>>} Bench */

/** @param {Awaited<ReturnType<typeof openStage>>} stage */
async function openBench(stage) {
  const secrets = { apiSecret: 'bench-api-secret', adminKey: 'bench-admin-key', adminSecret: 'bench-admin-secret' };
  const janus = await startJanus({
    ...{ dir: join(stage.dir, 'janus'), host: hostIPv4(), rtpPortMin: 30_000, rtpPortMax: 30_999 },
    ...{ wsPort: await freePort(), ...secrets },
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
    // The limits would be what is measured.
    RATE_LIMIT_SIGNALING_PER_SECOND: '0',
    RATE_LIMIT_MESSAGES_PER_SECOND: '0',
    RATE_LIMIT_METADATA_PER_SECOND: '0',
  };
  const start = async (/** @type {string} */ app, /** @type {string} */ portName) => {
    const port = String(await freePort());
    const env = { ...media, [portName]: port, HOST: '127.0.0.1', HEALTH_HOST: '127.0.0.1' };
    const child = await stage.run(`apps/${app}/dist/main.js`, env, `http://127.0.0.1:${port}/readyz`);
    return { child, origin: `http://127.0.0.1:${port}` };
  };
  const api = await start('api', 'PORT');
  await start('cleanup-worker', 'HEALTH_PORT');
  const signaling = await start('signaling', 'PORT');
  const call = async (
    /** @type {string} */ method,
    /** @type {string} */ path,
    /** @type {object | undefined} */ body = undefined,
  ) => {
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
    /** One that nobody has used yet. */
    startGateway: async () => {
      const { child, origin } = await start('signaling', 'PORT');
      return { pid: child.pid, url: urlOf(origin) };
    },
    newRoom: async () => String((await call('POST', '/v1/rooms', { name: 'bench', maxParticipants: 1_000 })).id),
    token: async (/** @type {string} */ room, /** @type {string} */ name) =>
      String(
        (await call('POST', `/v1/rooms/${room}/tokens`, { participantName: name, permissions: EVERYTHING })).token,
      ),
  };
}

/** @param {Bench} bench */
async function joinLatency({ newRoom, token, url }) {
  const room = await newRoom();
  const took = [];
  for (let index = 0; index < JOINS; index++) {
    const ticket = await token(room, `client ${index}`);
    const began = performance.now();
    const client = await openClient(url);
    await client.join(ticket);
    took.push(performance.now() - began);
    // Each joins a room of one: how a room's size counts is measured with the crowd.
    client.send({ type: 'leave' });
    await client.closed;
  }
  row('token to welcome, one after the other', spread(took));
}

/** @param {Bench} bench */
async function firstFrames({ newRoom, token, url }) {
  const room = await newRoom();
  const platform = /** @type {any} */ ({ WebSocket, RTCPeerConnection: wrtc.RTCPeerConnection });
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
  await publisher.publish(/** @type {any} */ (track), { source: 'camera' });
  const took = [];
  for (let index = 0; index < FIRST_FRAMES; index++) {
    const ticket = await token(room, `viewer ${index}`);
    const began = performance.now();
    const viewer = await connect({ url, token: ticket, platform });
    await new Promise((resolve) => {
      const watch = (/** @type {any} */ { mediaStreamTrack }) => {
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

/** @param {Bench} bench */
async function messagesPerSecond({ newRoom, token, url }) {
  const echo = fork(join(root, 'scripts/bench/echo.mjs'));
  const [{ port }] = /** @type {[{ port: number }]} */ (await once(echo, 'message'));
  const room = await newRoom();
  const names = Array.from({ length: CONNECTIONS }, (_, index) => `client ${index}`);
  const floor = await each(names, CONNECTIONS, () => openClient(`ws://127.0.0.1:${port}`));
  const gateway = await each(names, CONNECTIONS, async (name) => {
    const client = await openClient(url);
    await client.join(await token(room, name));
    return client;
  });
  // Each talks to the next one: every message is one in and one out, and an answer.
  const members = (await (await openClient(url)).join(await token(room, 'looker'))).participants;
  const ids = names.map((name) => members.find((/** @type {any} */ one) => one.name === name).participantId);
  /** @type {{ floor: number, pings: number, messages: number }[]} */
  const rounds = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const result = {
      floor: await rate(floor, 'pong', () => ({ type: 'ping' })),
      pings: await rate(gateway, 'pong', () => ({ type: 'ping' })),
      messages: await rate(gateway, 'ok', (index) => ({
        ...{ type: 'message', data: { text: 'x'.repeat(100) } },
        to: [ids[(index + 1) % ids.length]],
      })),
    };
    // The first one warms up.
    if (round > 0) rounds.push(result);
  }
  const against = (/** @type {'pings' | 'messages'} */ what) => {
    const ratios = rounds.map((one) => one[what] / one.floor);
    const range = `${Math.min(...ratios).toFixed(2)}-${Math.max(...ratios).toFixed(2)}`;
    return `${median(rounds.map((one) => one[what])).toFixed(0)} /s: ${median(ratios).toFixed(2)} (${range})`;
  };
  row('bare `ws` echo', `${median(rounds.map((one) => one.floor)).toFixed(0)} /s`);
  row('`ping` answered by the gateway', against('pings'));
  row('`message` to another participant', against('messages'));
  for (const client of [...floor, ...gateway]) client.close();
  echo.kill();
}

/**
 * How many answers come a second.
 * @param {import('./signaling-client.mjs').Client[]} clients
 * @param {string} answer
 * @param {(index: number) => object} message
 */
async function rate(clients, answer, message) {
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
  const began = performance.now();
  await new Promise((resolve) => setTimeout(resolve, ROUND_MS));
  isOver = true;
  const perSecond = (count * 1_000) / (performance.now() - began);
  await new Promise((resolve) => setTimeout(resolve, 300));
  return perSecond;
}

/**
 * @param {Bench} bench
 * @param {number} count
 */
async function roomEnd({ call, newRoom, token, url }, count) {
  const room = await newRoom();
  const clients = await each(Array.from({ length: count }), 20, async (_, index) => {
    const client = await openClient(url);
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

/** @param {Bench} bench */
async function crowd({ newRoom, token, startGateway }) {
  const { pid, url } = await startGateway();
  const rooms = await each(Array.from({ length: CROWD / CROWD_ROOM }), 10, () => newRoom());
  const tokens = await each(Array.from({ length: CROWD }), 10, (_, index) =>
    token(/** @type {string} */ (rooms[index % rooms.length]), `client ${index}`),
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

  // Everybody tells its room something every ten seconds, and changes its metadata every twenty.
  /** @type {number[]} */
  const messages = [];
  /** @type {number[]} */
  const presence = [];
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
  const rateOf = (/** @type {number[]} */ all) => `${(all.length / seconds).toFixed(0)} /s received`;
  row(
    `messages in ${rooms.length} rooms of ${CROWD_ROOM}: sent to received`,
    `${spread(messages)}, ${rateOf(messages)}`,
  );
  row('changes of metadata: sent to seen', `${spread(presence)}, ${rateOf(presence)}`);
  for (const client of clients) client.close();
}

/** @param {string} origin */
function urlOf(origin) {
  return `${origin.replace('http', 'ws')}/v1/signaling`;
}

/** Resident memory in KiB. @param {number | undefined} pid */
function memoryOf(pid) {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}

/** @param {number[]} values */
function spread(values) {
  const [p50, p95, p99] = [0.5, 0.95, 0.99].map((share) => percentile(values, share).toFixed(1));
  return `median ${p50} ms, p95 ${p95} ms, p99 ${p99} ms`;
}

/**
 * @param {string} what
 * @param {string} value
 */
function row(what, value) {
  console.log(`| ${what} | ${value} |`);
}
