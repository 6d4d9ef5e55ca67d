import { connect, type Call } from './call.js';
import type { ServerMessage, Track } from './protocol.generated.js';
import { nodePlatform, participant, startScriptedGateway, testToken, welcome } from './scripted-gateway.testkit.js';
import { eventually } from '@callplane/testing';
import { afterEach, describe, expect, test } from '@jest/globals';

const calls: Call[] = [];
afterEach(async () => {
  await Promise.all(calls.splice(0).map((call) => call.leave()));
});
async function join(url: string): Promise<Call> {
  const call = await connect({ url, token: testToken, platform: nodePlatform });
  calls.push(call);
  return call;
}
/** Records who joins, leaves and is hidden. */
const recorded = (call: Call) => {
  const events: string[] = [];
  call.on('participantJoined', ({ name }) => events.push(`+${name}`));
  call.on('participantLeft', ({ name }) => events.push(`-${name}`));
  call.on('participantHidden', ({ name }) => events.push(`hidden ${name}`));
  call.on('trackPublished', ({ trackId }) => events.push(`+${trackId}`));
  call.on('trackUpdated', ({ trackId, muted }) => events.push(`${trackId} ${muted ? 'muted' : 'unmuted'}`));
  call.on('trackUnpublished', ({ trackId }) => events.push(`-${trackId}`));
  return events;
};
/** Until then, events wait for listeners to be added after connect(). */
const welcomeReported = () => new Promise((resolve) => setTimeout(resolve, 20));
const camera: Track = { trackId: 'camera', kind: 'video', source: 'camera', muted: false };
const counts = { participantCount: 5_000, viewerCount: 4_900 };
const paged = { ...counts, paged: true, next: 'sess_x' };
const publisher = (id: string) => participant(id, { tracks: [camera] });

describe('in a small room', () => {
  test('applies each change, keeps its own apart, and counts everyone', async () => {
    const gateway = await startScriptedGateway();
    const call = await join(gateway.url);
    const events = recorded(call);
    const own: unknown[] = [];
    call.on('ownParticipantUpdated', ({ metadata }) => own.push(metadata));
    (await gateway.connection(0)).send({
      type: 'changes',
      changes: [
        { kind: 'participant', participant: participant('ada') },
        { kind: 'participant', participant: participant('me', { metadata: { hand: true } }) },
        { kind: 'tracks', participantId: 'ada', sessionId: 'sess_ada', tracks: [camera] },
        { kind: 'tracks', participantId: 'ada', sessionId: 'sess_ada', tracks: [{ ...camera, muted: true }] },
        { kind: 'participant', participant: participant('bob') },
        { kind: 'participant', participant: participant('eve', { metadata: { hand: true } }) },
      ],
    });
    await eventually(() => events.length === 5);
    expect(events).toEqual(['+ada', '+camera', 'camera muted', '+bob', '+eve']);
    expect(call.participant.metadata).toEqual({ hand: true });
    expect(own).toEqual([{ hand: true }]);
    expect([call.isRosterPaged, call.participantCount, call.viewerCount]).toEqual([false, 4, 1]);
    await call.updateMetadata({});
    expect(call.viewerCount).toBe(2);
  });
});

describe('in a paged room', () => {
  test('keeps of the welcome’s page those who publish, and reads further pages on request', async () => {
    const gateway = await startScriptedGateway({
      join: () =>
        welcome({ participants: [publisher('ada'), participant('bob', { metadata: { a: 1 } })], roster: paged }),
      roster: ({ cursor, limit }) => ({
        type: 'roster',
        participants: [participant(`after ${cursor} ${limit}`)],
        next: null,
        ...counts,
      }),
    });
    const call = await join(gateway.url);
    expect([...call.participants.keys()]).toEqual(['ada']);
    expect([call.isRosterPaged, call.participantCount, call.viewerCount]).toEqual([true, 5_000, 4_900]);
    const page = await call.listParticipants({ cursor: 'sess_1', limit: 20 });
    expect(page).toMatchObject({ participants: [{ name: 'after sess_1 20' }], next: null, ...counts });
  });

  test('show() hides the others at once, and adds those that the gateway has', async () => {
    const gateway = await startScriptedGateway({
      join: () => welcome({ participants: [publisher('ada'), publisher('bob')], roster: paged }),
      show: ({ participantIds }): ServerMessage => ({
        type: 'shown',
        participants: participantIds.filter((id) => id !== 'gone').map((id) => participant(id)),
      }),
    });
    const call = await join(gateway.url);
    await welcomeReported();
    const events = recorded(call);
    await call.show(['bob', 'eve', 'gone'], { publishers: false });
    expect((await gateway.connection(0)).received.at(-1)).toMatchObject({
      type: 'show',
      participantIds: ['bob', 'eve', 'gone'],
      publishers: false,
    });
    expect(events).toEqual(['-camera', 'hidden ada', '-camera', '+eve']);
    expect([...call.participants.keys()]).toEqual(['bob', 'eve']);
  });

  test('a room that becomes paged hides who does not publish, and says so', async () => {
    const gateway = await startScriptedGateway({
      join: () => welcome({ participants: [participant('ada'), publisher('bob')] }),
    });
    const call = await join(gateway.url);
    const events = recorded(call);
    const becamePaged = new Promise((resolve) => call.once('rosterPaged', resolve));
    (await gateway.connection(0)).send({
      type: 'rosterPaged',
      participants: [publisher('bob')],
      next: null,
      participantCount: 101,
      viewerCount: 100,
    });
    expect(await becamePaged).toEqual({ participantCount: 101, viewerCount: 100 });
    expect(events.filter((event) => !event.startsWith('+'))).toEqual(['hidden ada']);
    expect([call.isRosterPaged, call.participants.size]).toEqual([true, 1]);
  });
});

test('the room shows changes of roomUpdated, and after a reconnection those of the meantime', async () => {
  const room = { id: 'room_1', name: 'Daily', metadata: {}, maxParticipants: 5 };
  const gateway = await startScriptedGateway({
    join: () => welcome({ room }),
    resume: () => welcome({ resumed: true, room: { ...room, name: 'Third' } }),
  });
  const call = await join(gateway.url);
  const seen: string[] = [];
  call.on('roomUpdated', ({ name }) => seen.push(name));
  expect(call.room.name).toBe('Daily');
  const connection = await gateway.connection(0);
  connection.send({ type: 'roomUpdated', room: { ...room, name: 'Second', maxParticipants: 9 } });
  await eventually(() => seen.length === 1);
  expect(call.room).toEqual({ ...room, name: 'Second', maxParticipants: 9 });
  connection.cut();
  await eventually(() => seen.length === 2);
  expect([seen, call.room.name]).toEqual([['Second', 'Third'], 'Third']);
});

test('a call says since when it is recorded, also after a reconnection', async () => {
  const room = { id: 'room_1', name: 'Daily', metadata: {}, maxParticipants: 5, recordingSince: null };
  const since = '2026-11-29T00:00:00.000Z';
  const gateway = await startScriptedGateway({
    join: () => welcome({ room }),
    resume: () => welcome({ resumed: true, room }),
  });
  const call = await join(gateway.url);
  const seen: (string | null)[] = [];
  call.on('recordingChanged', (value) => seen.push(value));
  expect([call.recordingSince, call.getSnapshot().recordingSince]).toEqual([null, null]);
  const connection = await gateway.connection(0);
  connection.send({ type: 'roomUpdated', room: { ...room, recordingSince: since } });
  connection.send({ type: 'roomUpdated', room: { ...room, name: 'Other', recordingSince: since } });
  await eventually(() => call.room.name === 'Other');
  expect(call.recordingSince).toBe(since);
  connection.cut();
  await eventually(() => seen.length === 2);
  expect([seen, call.recordingSince]).toEqual([[since, null], null]);
});
