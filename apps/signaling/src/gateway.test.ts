import { beforeAll, describe, expect, test } from '@jest/globals';
import { startTestSignaling, type TestInstance, type TestSignaling } from './signaling.testkit.js';

let kit: TestSignaling;
let one: TestInstance;
let two: TestInstance;
beforeAll(async () => {
  kit = await startTestSignaling();
  [one, two] = await Promise.all([kit.start(), kit.start()]);
});

describe('a join', () => {
  test('is welcomed with the room, the others and what is permitted; the others are told', async () => {
    const roomId = await kit.newRoom();
    const ada = await kit.enter(one.url, roomId, { permissions: ['room:join', 'messages:send'], metadata: { a: 1 } });
    expect(ada.welcome).toMatchObject({
      resumed: false,
      room: { id: roomId, status: 'active' },
      participant: { participantId: ada.participantId, name: 'Ada', metadata: { a: 1 }, connected: true, tracks: [] },
      participants: [],
      permissions: ['room:join', 'messages:send'],
      media: { state: 'down', continued: false },
    });
    const bob = await kit.enter(two.url, roomId, { name: 'Bob' });
    expect(bob.welcome.participants).toMatchObject([{ participantId: ada.participantId }]);
    expect(await ada.client.until('participantJoined')).toMatchObject({
      participant: { participantId: bob.participantId, name: 'Bob' },
    });
    expect(await kit.story(roomId, ada.participantId)).toEqual(['joined']);
    bob.client.send({ type: 'leave' });
    await bob.client.untilClosed('left');
    expect(await ada.client.until('participantLeft')).toMatchObject({ participantId: bob.participantId });
    expect(await kit.story(roomId, bob.participantId)).toEqual(['joined', 'left left']);
  });
});
