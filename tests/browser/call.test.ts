import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { eventually, relaysByUser } from '@callplane/testing';
import { mediaFlows, openBrowser, type Browsers, type JoinOptions, type ParticipantPage } from './pages.testkit.js';
import { EVERYTHING, openStage, roomsOf, type Stage } from './stage.testkit.js';

/** `user-quota` of infra/coturn/turnserver.conf. */
const RELAYS_OF_A_SESSION_MAX = 24;
/** Below the interval of the resync, which would make up for a lost notice. */
const AT_ONCE_MS = 4_500;
let stage: Stage;
let browsers: Browsers;
const pages: ParticipantPage[] = [];

beforeAll(async () => {
  [stage, browsers] = await Promise.all([openStage({ relay: true }), openBrowser()]);
});
afterEach(async () => {
  await Promise.all(pages.splice(0).map((page) => page.close()));
});

async function enter(roomId: string, name: string, more: Partial<JoinOptions> & { permissions?: string[] } = {}) {
  const { permissions, ...options } = more;
  const { token, participantId } = await stage.token(roomId, name, permissions);
  const participant = await browsers.newParticipant();
  pages.push(participant);
  await participant.join({ url: stage.url, token, publish: true, ...options });
  return { ...participant, token, participantId };
}

describe('a call', () => {
  test.each(['udp', 'tcp'] as const)('media flows over a relay alone with TURN over %s', async (way) => {
    const { coturn } = stage;
    const gateway = await stage.spawnSignaling({
      TURN_URLS: `turn:${coturn!.host}:${coturn!.port}?transport=${way}`,
    });
    const url = `${gateway.url.replace('http', 'ws')}/v1/signaling`;
    const roomId = await stage.newRoom();
    const relayed = { url, iceTransportPolicy: 'relay' } as const;
    const [ada, bob] = await Promise.all([enter(roomId, 'Ada', relayed), enter(roomId, 'Bob')]);
    await mediaFlows([ada, bob]);
    expect(await ada.ask('relays')).toEqual([way, way]);
    await gateway.stop();
  });
});

test('a participant who publishes and receives everything uses at most a third of its relay quota', async () => {
  const roomId = await stage.newRoom();
  // A browser that finds a direct path first stops gathering, and may then have no relay at all.
  const relayed = { iceTransportPolicy: 'relay' } as const;
  const [ada, bob] = await Promise.all([enter(roomId, 'Ada', relayed), enter(roomId, 'Bob', relayed)]);
  await mediaFlows([ada, bob]);
  await ada.ask('shareScreen');
  await eventually(async () => (await bob.ask('others')).Ada.includes('screen'));
  const relays = [...(await relaysByUser(stage.coturn!)).values()];
  console.log('measured: relays of each session', relays);
  expect(relays.length).toBeGreaterThanOrEqual(2);
  expect(Math.max(...relays)).toBeLessThanOrEqual(RELAYS_OF_A_SESSION_MAX / 3);
});

describe('permissions', () => {
  const permissions = EVERYTHING.filter((permission) => !['video:publish', 'screen:publish'].includes(permission));

  test('the SDK does not request the camera without video:publish, and audio still works', async () => {
    const roomId = await stage.newRoom();
    const quiet = await enter(roomId, 'Quiet', { permissions, publish: false });
    expect(await quiet.ask('publish', { video: true })).toBe('permission_denied');
    expect(await quiet.ask('publish', { audio: true })).toBeNull();
    expect((await quiet.ask('frames')).filter(({ message }: any) => message.type === 'publish')).toHaveLength(1);
  });

  test.each([
    ['declares it', 'permission_denied'],
    ['does not declare it', 'invalid_sdp'],
    ['calls it a microphone', 'invalid_sdp'],
    ['calls it a screen', 'permission_denied'],
  ])('rejects a hostile client without video:publish that %s (%s)', async (hostile, code) => {
    const roomId = await stage.newRoom();
    const mallory = await enter(roomId, 'Mallory', { permissions, publish: false, hostile });
    expect(await mallory.ask('publish', { audio: true, video: true })).toBe(code);
  });

  test('forwards audio but no video of a hostile client that sends video against its own offer', async () => {
    const roomId = await stage.newRoom();
    const hostile = 'says that it does not send, and sends';
    const [bob, mallory] = await Promise.all([
      enter(roomId, 'Bob'),
      enter(roomId, 'Mallory', { permissions, publish: false, hostile }),
    ]);
    expect(await mallory.ask('publish', { audio: true, video: true })).toBeNull();
    await eventually(async () => (await bob.ask('received')).Mallory?.packets > 0);
    // Makes sure that it sends video: otherwise the test would prove nothing.
    await eventually(async () => (await mallory.ask('sent')).video > 30);
    await delay(500);
    expect((await bob.ask('received')).Mallory.frames).toBe(0);
    expect((await bob.ask('others')).Mallory).toEqual(['microphone']);
  });
});

describe('removal and end', () => {
  test('a removed participant is disconnected at once and rejoins neither with its token nor with its resume secret', async () => {
    const roomId = await stage.newRoom();
    const [ada, bob] = await Promise.all([enter(roomId, 'Ada'), enter(roomId, 'Bob')]);
    await mediaFlows([ada, bob]);
    const askedAt = Date.now();
    const answer = await stage.call('DELETE', `/v1/rooms/${roomId}/participants/${bob.participantId}`);
    expect([202, 204]).toContain(answer.status);
    const closed = await eventually(async () => (await bob.events()).find(({ name }) => name === 'closed'));
    expect(closed.what.reason).toBe('removed');
    expect(closed.atMs - askedAt).toBeLessThan(AT_ONCE_MS);
    const left = await eventually(async () => (await ada.events()).find(({ name }) => name === 'participantLeft'));
    expect(left.atMs - askedAt).toBeLessThan(AT_ONCE_MS);

    const again = await browsers.newParticipant();
    pages.push(again);
    expect(await again.ask('joinCode', { url: stage.url, token: bob.token })).toMatch(/^(removed|invalid_token)$/);
    const frames = await bob.ask<{ message: any }[]>('frames');
    const { room, sessionId, resumeSecret } = frames.find(({ message }) => message.type === 'welcome')!.message;
    expect(await closingOf(stage.url, { type: 'resume', roomId: room.id, sessionId, resumeSecret })).toMatch(
      /^(removed|invalid_session)$/,
    );
    await eventually(
      async () => (await stage.eventTypes(roomId)).filter((type) => type === 'participant.left').length === 1,
    );
  });

  test('the end of a room reaches everybody at once and leaves the media server empty', async () => {
    const roomId = await stage.newRoom();
    const both = await Promise.all([enter(roomId, 'Ada'), enter(roomId, 'Bob')]);
    await mediaFlows(both);
    expect(await roomsOf(stage.janus!)).toContain(roomId);
    const askedAt = Date.now();
    expect([202, 204]).toContain((await stage.call('DELETE', `/v1/rooms/${roomId}`)).status);
    for (const one of both) {
      const closed = await eventually(async () => (await one.events()).find(({ name }) => name === 'closed'));
      expect(closed.what.reason).toBe('room_ended');
      expect(closed.atMs - askedAt).toBeLessThan(AT_ONCE_MS);
    }
    await eventually(async () => (await stage.eventTypes(roomId)).at(-1) === 'room.ended');
    expect(await roomsOf(stage.janus!)).not.toContain(roomId);
    const types = await stage.eventTypes(roomId);
    expect(types.filter((type) => type === 'participant.left')).toHaveLength(2);
  });
});

/** The close reason with which the gateway answers a first message. */
async function closingOf(url: string, first: object): Promise<string> {
  const socket = new WebSocket(url, 'callplane.v1');
  await once(socket, 'open');
  socket.send(JSON.stringify(first));
  const [, reason] = (await once(socket, 'close')) as [number, Buffer];
  return reason.toString();
}
