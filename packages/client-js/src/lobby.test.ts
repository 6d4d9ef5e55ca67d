import { eventually } from '@callplane/testing';
import { afterEach, expect, test } from '@jest/globals';
import { connect, type Call } from './call.js';
import { nodePlatform, participant, startScriptedGateway, testToken, welcome } from './scripted-gateway.testkit.js';

const calls: Call[] = [];
afterEach(async () => {
  await Promise.all(calls.splice(0).map((call) => call.leave()));
});

const ROOM = { id: 'room_1', name: 'Office hours', metadata: {}, encryption: 'none', recordingSince: null };
const held = (more: object = {}) =>
  welcome({
    waiting: true,
    room: ROOM,
    permissions: [],
    roster: { paged: false, next: null, participantCount: 3, viewerCount: 0 },
    media: { state: 'down', continued: false },
    ...more,
  });
const entered = (more: object = {}) =>
  welcome({ room: { ...ROOM, maxParticipants: 9 }, participants: [participant('ada')], ...more });

async function wait(url: string, options: object = {}) {
  const call = await connect({ url, token: testToken, platform: nodePlatform, ...options });
  calls.push(call);
  const heard: string[] = [];
  call.on('state', (state) => heard.push(state));
  call.on('admitted', () => heard.push(`admitted with ${call.permissions.length} permissions`));
  call.on('participantJoined', ({ name }) => heard.push(`${name} joined`));
  call.on('closed', ({ reason }) => heard.push(`closed: ${reason}`));
  return { call, heard };
}

test('a call in the lobby knows the name of the room and a count, and nothing can be sent', async () => {
  const gateway = await startScriptedGateway({ join: () => held() });
  const { call } = await wait(gateway.url);
  expect(call).toMatchObject({
    state: 'waiting',
    room: { name: 'Office hours' },
    participantCount: 3,
    permissions: [],
  });
  expect(call.getSnapshot()).toMatchObject({ state: 'waiting', participantCount: 3, mediaState: 'down' });
  await expect(call.send('hello')).rejects.toMatchObject({ code: 'permission_denied' });
  expect((await gateway.connection(0)).received.map(({ type }) => type)).toEqual(['join']);
});

test('an admission completes the same call, and says so once it can be used', async () => {
  const gateway = await startScriptedGateway({ join: () => held() });
  const { call, heard } = await wait(gateway.url);
  const before = call.getSnapshot();
  (await gateway.connection(0)).send(entered());
  await eventually(() => call.state === 'connected');
  expect(heard).toEqual(['ada joined', 'admitted with 6 permissions', 'connected']);
  expect(call).toMatchObject({ mediaState: 'up', participantCount: 2, sessionId: before.sessionId });
  await call.send('hello');
});

test('an admission right after the join is not missed', async () => {
  const gateway = await startScriptedGateway({
    join: (_, connection) => {
      connection.send(held(), entered());
      return undefined;
    },
  });
  const { heard } = await wait(gateway.url);
  await eventually(() => heard.includes('admitted with 6 permissions'));
});

test('a lost connection is resumed in the lobby, or in the call if the admission came meanwhile', async () => {
  const answers = [held({ resumed: true }), entered({ resumed: true })];
  const gateway = await startScriptedGateway({ join: () => held(), resume: () => answers.shift() });
  const { call, heard } = await wait(gateway.url);
  (await gateway.connection(0)).cut();
  await eventually(() => heard.at(-1) === 'waiting');
  (await gateway.connection(1)).cut();
  await eventually(() => call.state === 'connected');
  expect(heard).toEqual([
    ...['reconnecting', 'waiting', 'reconnecting'],
    ...['ada joined', 'admitted with 6 permissions', 'connected'],
  ]);
});

test('a refusal ends the call with the reason, and leaving works', async () => {
  const gateway = await startScriptedGateway({ join: () => held() });
  const refused = await wait(gateway.url);
  (await gateway.connection(0)).end('removed');
  await eventually(() => refused.call.state === 'closed');
  expect(refused.heard).toEqual(['closed', 'closed: removed']);
  const leaving = await wait(gateway.url);
  await leaving.call.leave();
  expect((await gateway.connection(1)).received.map(({ type }) => type)).toEqual(['join', 'leave']);
});
