import { expect, test } from '@jest/globals';
import { eraseEventBody } from './event.erasure.js';

test("eraseEventBody removes the personal data of the event's participant and nothing else", () => {
  const participant = {
    id: 'part_1',
    roomId: 'room_1',
    externalId: 'user-7',
    name: 'Ada',
    metadata: { phone: '+49 30' },
    role: 'participant',
    joinedAt: '2026-11-22T08:00:00.000Z',
    leftAt: null,
  };
  const room = { id: 'room_1', name: 'Weekly', metadata: JSON.parse('{"__proto__":{"n":1e-7},"Ada":[0.1]}') as object };
  const event = { id: 'evt_1', type: 'participant.joined', sequence: 3, data: { room, participant, sessionId: 's' } };
  const text = eraseEventBody(JSON.stringify(event), new Date('2026-11-22T09:00:00Z'));
  expect(text).not.toMatch(/user-7|\+49|"name":"Ada"/);
  const data = { ...event.data, participant: { ...participant, externalId: null, name: 'Erased', metadata: {} } };
  expect(text).toBe(JSON.stringify({ ...event, data, erasedAt: '2026-11-22T09:00:00.000Z' }));
});
