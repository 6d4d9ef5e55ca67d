import { beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import { startTestSignaling, type Joined, type TestInstance, type TestSignaling } from './signaling.testkit.js';

/** A room with more participants is paged. */
const FULL_MAX = 4;

let kit: TestSignaling;
let one: TestInstance;
let two: TestInstance;
beforeAll(async () => {
  kit = await startTestSignaling();
  const settings = { ROSTER_FULL_MAX: String(FULL_MAX), RECONNECT_GRACE_SECONDS: '60' };
  [one, two] = await Promise.all([kit.start(settings), kit.start(settings)]);
});

const enter = (instance: TestInstance, roomId: string, metadata: Record<string, unknown> = {}) =>
  kit.enter(instance.url, roomId, { metadata });
/** A room with FULL_MAX + 1 viewers, half of them on each instance. */
async function pagedRoom(): Promise<{ roomId: string; viewers: Joined[] }> {
  const roomId = await kit.newRoom();
  const viewers: Joined[] = [];
  for (let n = 0; n <= FULL_MAX; n++) viewers.push(await enter(n % 2 === 0 ? one : two, roomId));
  return { roomId, viewers };
}

const changesSincePaged = ({ client: { messages } }: Joined) =>
  messages.slice(messages.findIndex(({ type }) => type === 'rosterPaged')).filter(({ type }) => type === 'changes');

describe('a room with more participants than ROSTER_FULL_MAX', () => {
  test('becomes paged: its clients get the first page and the count, and viewers are only counted', async () => {
    const { roomId, viewers } = await pagedRoom();
    for (const { client } of viewers.slice(0, FULL_MAX)) {
      expect(await client.until('rosterPaged')).toMatchObject({ participants: [], next: null });
    }
    const last = await enter(one, roomId);
    expect(last.welcome.participants).toEqual([]);
    expect(last.welcome.participant).toMatchObject({ participantId: last.participantId });
    expect(last.welcome.roster).toMatchObject({ paged: true, next: null });
    const everyone = { participantCount: FULL_MAX + 2, viewerCount: FULL_MAX + 2 };
    for (const { client } of [...viewers, last]) {
      await client.until('viewerCount', ({ participantCount }) => participantCount === everyone.participantCount);
      expect(client.of('viewerCount').at(-1)).toMatchObject(everyone);
    }
    // Once the room is paged, no client gets a change about a viewer.
    expect(changesSincePaged(viewers[0]!)).toEqual([]);
  });

  test('sends changes of a participant only to the clients that show it', async () => {
    const { roomId, viewers } = await pagedRoom();
    const [here, there, other] = [viewers[0]!, viewers[1]!, viewers[2]!];
    const ada = await enter(one, roomId, { seat: 1 });
    await eventually(async () => (await there.client.ask({ type: 'roster' }, 'roster')).participants.length === 1);
    for (const { client } of [here, there]) {
      const shown = await client.ask({ type: 'show', participantIds: [ada.participantId] }, 'shown');
      expect(shown.participants).toMatchObject([{ participantId: ada.participantId, metadata: { seat: 1 } }]);
    }
    await ada.client.ask({ type: 'metadata', metadata: { seat: 2 } }, 'ok');
    for (const { client } of [here, there]) {
      await client.until('changes', ({ changes }) =>
        changes.some((change) => change.kind === 'participant' && change.participant.metadata['seat'] === 2),
      );
    }
    // A participant without metadata is a viewer again.
    await ada.client.ask({ type: 'metadata', metadata: {} }, 'ok');
    await here.client.until('changes', ({ changes: [first] }) => first?.kind === 'hidden');
    expect(changesSincePaged(other)).toEqual([]);
  });

  test('delivers messages to viewers, too, and refuses recipients that are not in the room', async () => {
    const { roomId, viewers } = await pagedRoom();
    const ada = await enter(one, roomId);
    const [here, there] = [viewers[0]!, viewers[1]!];
    await ada.client.ask({ type: 'message', data: 'hi', to: [here.participantId, there.participantId] }, 'ok');
    await Promise.all([here, there].map(({ client }) => client.until('message', ({ data }) => data === 'hi')));
    const refused = await ada.client.ask({ type: 'message', data: 1, to: ['part_x'] }, 'error');
    expect(refused).toMatchObject({ code: 'not_found' });
  });

  test('resumes a session with the first page', async () => {
    const { viewers } = await pagedRoom();
    const ada = viewers[0]!;
    ada.client.terminate();
    const resumed = await kit.resume(two.url, ada.welcome);
    expect(resumed).toMatchObject({ resumed: true, sessionId: ada.welcome.sessionId, roster: { paged: true } });
    expect(resumed.participant).toMatchObject({ participantId: ada.participantId });
  });
});
