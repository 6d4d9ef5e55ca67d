import { beforeAll, describe, expect, test } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import type { ConnectionTest } from '@callplane/client-js';
import { freePort } from '@callplane/local-servers';
import { eventually, startUdpShaper, stopAtEnd, type UdpShaper } from '@callplane/testing';
import { openCall, type Call } from './call.testkit.js';
import { mediaFlows, type ParticipantPage } from './pages.testkit.js';
import { signalingUrl } from './stage.testkit.js';

/**
 * The path of media is lost while everything else works: both peer connections restart ICE, and none is replaced. Each
 * takes two relays, as with the usual two URLs, and coturn has its usual quota.
 */

const CUT_MS = 12_000;
const CUT = { lossPercent: 100 };
const MOVES = 30;
let stage: Call['stage'];
let enter: Call['enter'];
let visit: Call['visit'];
let lines: UdpShaper[];
let url: string;

beforeAll(async () => {
  ({ stage, enter, visit } = await openCall({ relay: true }));
  lines = await Promise.all([startUdpShaper(stage.coturn!), startUdpShaper(stage.coturn!)]);
  for (const line of lines) stopAtEnd(() => line.close());
  const { host } = stage.coturn!;
  const urls = lines.map(({ port }) => `turn:${host}:${port}?transport=udp`);
  const gateway = await stage.spawnSignaling({ TURN_URLS: urls.join() });
  url = signalingUrl(new URL(gateway.url).port);
});

/** Ada's media crosses the lines, Bob's does not. */
async function callOverLines(): Promise<[ada: ParticipantPage, bob: ParticipantPage]> {
  const roomId = await stage.newRoom();
  const both = await Promise.all([enter(roomId, 'Ada', { url, iceTransportPolicy: 'relay' }), enter(roomId, 'Bob')]);
  await mediaFlows(both);
  await Promise.all(both.map((page) => page.ask('measurePauses')));
  // A pause counts from a picture and a block of sound before it.
  await eventually(async () => {
    const longest = await pausesOf(both);
    return longest.every(({ video, audio }) => video > 0 && audio > 0);
  });
  return both;
}
/** Adds the requests and messages of the participants to a failure. */
async function explained<T>(participants: ParticipantPage[], task: () => Promise<T>): Promise<T> {
  try {
    return await task();
  } catch (error) {
    const histories = await Promise.all(participants.map((one) => one.ask<unknown[]>('videoHistory')));
    const lines = histories.flatMap((all, at) => [`participant ${at}:`, ...all.map((one) => JSON.stringify(one))]);
    throw new Error([String(error), ...lines].join('\n'), { cause: error });
  }
}
/** The longest pauses at each participant, in milliseconds. */
const pausesOf = (participants: ParticipantPage[]) =>
  Promise.all(participants.map((page) => page.ask<{ video: number; audio: number }>('pauses')));
const shape = (all: { lossPercent?: number }) => lines.forEach((line) => line.shape({ up: all, down: all }));
const statesOf = async (page: ParticipantPage) =>
  (await page.events()).filter(({ name }) => name === 'state').map(({ what }) => what as string);
async function moveToAnotherNetwork({ page }: ParticipantPage): Promise<void> {
  await page.context().setOffline(true);
  // No packet from or to the present addresses arrives any more.
  for (const line of lines) line.loseClients();
  await page.context().setOffline(false);
}
const connectionsOf = async (page: ParticipantPage) => (await page.ask('negotiations')).connections as number;

describe('the path of a participant’s media', () => {
  test('is repaired after a cut of 12 s, on both peer connections, without new ones', async () => {
    const both = await callOverLines();
    const before = await Promise.all(both.map(connectionsOf));
    shape(CUT);
    await delay(CUT_MS);
    expect(await Promise.all(both.map(statesOf))).toEqual([['reconnecting'], []]);
    shape({});
    const restoredAt = performance.now();
    await explained(both, () => mediaFlows(both));
    const flowsAfterMs = Math.round(performance.now() - restoredAt);
    // A pause is known when the next picture comes, which may be after the sound.
    const pauses = await eventually(async () => {
      const longest = await pausesOf(both);
      if (longest.every(({ video }) => video > CUT_MS / 2)) return longest;
      throw new Error(`the longest pauses in ms are ${JSON.stringify(longest)}`);
    });
    process.stderr.write(
      `    measured: cut of ${CUT_MS} ms: media flows ${flowsAfterMs} ms after it, longest pauses in ms ${JSON.stringify(pauses)}\n`,
    );
    expect(await Promise.all(both.map(connectionsOf))).toEqual(before);
    expect(await both[0].ask('state')).toBe('connected');
  });

  test('is repaired after a move to another network, on both peer connections', async () => {
    const [ada, bob] = await callOverLines();
    const before = await connectionsOf(ada);
    await moveToAnotherNetwork(ada);
    await explained([ada, bob], () => mediaFlows([ada, bob]));
    const pauses = await pausesOf([ada, bob]);
    process.stderr.write(`    measured: another network: longest pauses in ms ${JSON.stringify(pauses)}\n`);
    expect(await connectionsOf(ada)).toBe(before);
  });

  test(`is repaired after each of ${MOVES} moves, although coturn keeps the relays of lost networks for ten minutes`, async () => {
    const both = await callOverLines();
    const tookMs: number[] = [];
    for (let move = 0; move < MOVES; move += 1) {
      const movedAt = performance.now();
      await moveToAnotherNetwork(both[0]);
      await explained(both, () => mediaFlows(both, { kinds: ['packets', 'samples'] }));
      tookMs.push(Math.round(performance.now() - movedAt));
    }
    process.stderr.write(`    measured: media flows after each of ${MOVES} moves, in ms: ${tookMs.join(', ')}\n`);
    await eventually(async () => (await both[0].ask('state')) === 'connected');
  });
});

test('a page tests its line without joining: an open one, one without UDP, a slow and a lossy one', async () => {
  const roomId = await stage.newRoom();
  const { token } = await stage.token(roomId, 'Ada');
  const { body } = await stage.call('POST', '/v1/turn/credentials', {});
  const { host, port } = stage.coturn!;
  const blocked = await startUdpShaper(stage.coturn!);
  stopAtEnd(() => blocked.close());
  const [slow, lossy] = lines as [UdpShaper, UdpShaper];
  const line = { kbitPerSecond: 200, delayMs: 40 };
  blocked.shape({ up: CUT, down: CUT });
  slow.shape({ up: line, down: line });
  // Of 100 packets, at least one is lost in all but one of a million runs.
  lossy.shape({ up: { lossPercent: 12 }, down: {} });
  const dead = await freePort(host);
  const over = (...urls: string[]) => ({
    url: stage.url,
    seconds: 2,
    iceServers: [{ ...body.iceServers.at(-1), urls }],
  });
  const udp = (shaper: UdpShaper) => `turn:${host}:${shaper.port}?transport=udp`;
  const tests = [
    { url: stage.url, seconds: 2, token },
    over(udp(blocked), `turn:${host}:${port}?transport=tcp`, `turns:${host}:${dead}?transport=tcp`),
    over(udp(slow)),
    { ...over(udp(lossy), `turn:${host}:${port}?transport=tcp`), seconds: 4 },
  ];
  const done = tests.map(async (options) => (await visit()).ask<ConnectionTest>('testConnection', options));
  const [open, tcpOnly, onSlow, onLossy] = (await Promise.all(done)) as [
    ConnectionTest,
    ConnectionTest,
    ConnectionTest,
    ConnectionTest,
  ];
  const figures = { open: open.loop, tcpOnly: tcpOnly.loop, onSlow: onSlow.loop, onLossy: onLossy.loop };
  process.stderr.write(`    measured: loops over four lines: ${JSON.stringify(figures)}\n`);

  expect(outcomesOf(open)).toBe(
    'webSocket passed, turnUdp passed, turnTcp passed, turnTls skipped, udp passed, loop passed',
  );
  expect(open).toMatchObject({ isUsable: true, loop: { lossUpPercent: 0, lossDownPercent: 0 } });
  expect(open.loop!.kbitPerSecond).toBeGreaterThan(1000);
  // Nobody has joined.
  expect(await stage.eventTypes(roomId)).toEqual(['room.created']);

  expect(outcomesOf(tcpOnly)).toBe(
    'webSocket passed, turnUdp failed, turnTcp passed, turnTls failed, udp failed, loop passed',
  );
  expect(tcpOnly.steps[1]!.message).toBe(`TURN over UDP is blocked. Open UDP port ${blocked.port} to ${host}.`);
  expect(tcpOnly.isUsable).toBe(true);

  expect(onSlow.loop!.roundTripMs).toBeGreaterThan(75);
  expect(onSlow.loop!.kbitPerSecond).toBeGreaterThan(50);
  expect(onSlow.loop!.kbitPerSecond).toBeLessThan(220);
  expect(onSlow.loop!.lossUpPercent).toBeUndefined();
  expect(onLossy.loop!.lossUpPercent).toBeGreaterThan(0);
  expect(onLossy.loop).toMatchObject({ lossDownPercent: 0, lossPercent: onLossy.loop!.lossUpPercent });
});
const outcomesOf = ({ steps }: ConnectionTest) => steps.map(({ name, outcome }) => `${name} ${outcome}`).join(', ');
