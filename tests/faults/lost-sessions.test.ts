import { once } from 'node:events';
import { expect, test } from '@jest/globals';
import { SUBPROTOCOL } from '@callplane/protocol';
import { eventually, stopAtEnd } from '@callplane/testing';
import { WebSocket } from 'ws';
import { measured, startStack } from './faults.testkit.js';

const PEOPLE = 20;
/** Within which the contract promises the end of sessions whose gateway was killed. */
const ENDED_WITHIN_MS = 30_000;

test('participants of a killed gateway have left within 30 seconds, once each, with two workers', async () => {
  const stack = await startStack();
  const spawnWorker = () => stack.spawnWorker({ SWEEP_INTERVAL_MS: '5000' });
  const [api, gateway] = await Promise.all([stack.spawnApi(), stack.spawnSignaling(), spawnWorker(), spawnWorker()]);
  const roomId = await stack.newRoom(api);
  const join = async () => {
    const { body } = await stack.call(api, 'POST', `/v1/rooms/${roomId}/tokens`, { body: { participantName: 'Ada' } });
    const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/v1/signaling`, SUBPROTOCOL);
    socket.on('error', () => undefined);
    stopAtEnd(async () => socket.terminate());
    await once(socket, 'open');
    socket.send(JSON.stringify({ type: 'join', token: body.token }));
  };
  await Promise.all(Array.from({ length: PEOPLE }, join));
  const { prisma } = stack.database;
  const open = () => prisma.participantSession.count({ where: { roomId, endedAt: null } });
  await eventually(async () => (await open()) === PEOPLE);

  gateway.kill('SIGKILL');
  await gateway.exited;
  const killedAtMs = performance.now();
  await eventually(async () => (await open()) === 0);
  const endedMs = performance.now() - killedAtMs;
  measured({ 'ms until its 20 participants had left': endedMs });
  expect(endedMs).toBeLessThan(ENDED_WITHIN_MS);
  const events = await prisma.event.findMany({ where: { roomId }, orderBy: { sequence: 'asc' } });
  expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1));
  const left = events.filter(({ type }) => type === 'participant.left').map(({ body }) => JSON.parse(body).data);
  expect(left.map(({ reason }) => reason)).toEqual(Array(PEOPLE).fill('connection_lost'));
  expect(new Set(left.map(({ participant }) => participant.id)).size).toBe(PEOPLE);
  await eventually(async () => (await prisma.signalingInstance.count()) === 0);
});
