import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import {
  startTestSignaling,
  resumptionOf,
  type Joined,
  type TestInstance,
  type TestSignaling,
} from './signaling.testkit.js';
import { connectClient, type TestClient } from './client.testkit.js';

let kit: TestSignaling;
let one: TestInstance;
let two: TestInstance;
let from: string;
let to: string;
beforeAll(async () => {
  kit = await startTestSignaling();
  [one, two] = await Promise.all([kit.start(), kit.start({ RATE_LIMIT_MESSAGES_PER_SECOND: '0' })]);
});
beforeEach(async () => {
  [from, to] = [await kit.newRoom(), await kit.newRoom()];
});

async function refused(message: object): Promise<TestClient> {
  const client = await connectClient(two.url);
  client.send(message);
  return client;
}
const enter = (roomId: string, metadata = {}): Promise<Joined> => kit.enter(one.url, roomId, { metadata });

describe('a participant that is moved', () => {
  test('is told to resume, and then is in the other room, at any gateway', async () => {
    const [ada, bob, cem] = [await enter(from, { seat: 1 }), await enter(from), await enter(to)];
    await kit.move(from, ada.participantId, to);
    const closing = await ada.client.until('closing');
    expect(closing).toMatchObject({ reason: 'moved', reconnect: 'resume' });
    await bob.client.until('changes', ({ changes }) =>
      changes.some((change) => change.kind === 'left' && change.participantId === ada.participantId),
    );
    const resumed = await kit.resume(two.url, ada.welcome);
    const { sessionId, participant, participants, media, room } = resumed;
    expect([room['id'], media.continued]).toEqual([to, false]);
    expect(sessionId).not.toBe(ada.welcome.sessionId);
    expect(participant).toMatchObject({ name: 'Ada', metadata: { seat: 1 } });
    expect(participants.map(({ participantId }) => participantId)).toEqual([cem.participantId]);
    await cem.client.until('changes', ({ changes }) =>
      changes.some(
        (change) =>
          change.kind === 'participant' && change.participant.sessionId === sessionId && change.participant.connected,
      ),
    );
    // The new session is resumed like any other one.
    resumed.client.terminate();
    expect(await kit.resume(one.url, resumed)).toMatchObject({ resumed: true, sessionId });
  });

  test('follows when it comes back, if it was not connected, also after several moves', async () => {
    const ada = await enter(from);
    ada.client.terminate();
    await kit.move(from, ada.participantId, to);
    const { id } = await kit.database.prisma.participant.findFirstOrThrow({ where: { roomId: to } });
    const third = await kit.newRoom();
    await kit.move(to, id, third);
    expect((await kit.resume(two.url, ada.welcome)).room['id']).toBe(third);
  });

  test('learns why if the other room has ended meanwhile', async () => {
    const ada = await enter(from);
    await kit.move(from, ada.participantId, to);
    await kit.end(to);
    await (await refused(resumptionOf(ada.welcome))).untilClosed('room_ended');
  });

  test('cannot come back into the room, and nobody follows it without its secret', async () => {
    const ada = await enter(from);
    await kit.move(from, ada.participantId, to);
    await (await refused({ type: 'join', token: ada.token })).untilClosed('invalid_token');
    const guessed = { ...resumptionOf(ada.welcome), resumeSecret: 'x'.repeat(43) };
    await (await refused(guessed)).untilClosed('invalid_session');
  });
});
