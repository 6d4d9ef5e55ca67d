import { expect, test } from '@jest/globals';
import { newId } from '@callplane/core';
import { createTestDatabase, stopAtEnd } from '@callplane/testing';
import { Database } from '../client/database.js';
import { listTurnServers, recordTurnServerState, sessionsAmong } from './relays.js';

const database = new Database({ url: (await createTestDatabase()).url, poolMax: 1 });
stopAtEnd(() => database.close());

test('a state of a TURN server changes once, and shows while it is recent', async () => {
  const record = (state: 'up' | 'down') => recordTurnServerState(database.sql, '192.0.2.1:3478', state);
  expect([await record('up'), await record('up'), await record('down')]).toEqual([true, false, true]);
  const [{ now }] = await database.sql.$queryRaw<[{ now: Date }]>`SELECT now()`;
  expect(await listTurnServers(database.prisma, now)).toEqual([{ address: '192.0.2.1:3478', state: 'down' }]);
  expect(await listTurnServers(database.prisma, new Date(now.getTime() + 60_000))).toEqual([]);
});

test('an unknown session belongs to no room, and has not ended', async () => {
  const ids = [newId('session')];
  expect(await sessionsAmong(database.sql, ids, 'ended')).toEqual([]);
  expect(await sessionsAmong(database.sql, ids, { roomId: newId('room'), participantId: null })).toEqual([]);
});
