import { beforeAll, expect, test } from '@jest/globals';
import { connect, type Call, type Platform } from '@callplane/client-js';
import type { Permission } from '@callplane/core';
import { eventually, stopAtEnd } from '@callplane/testing';
import { WebSocket } from 'ws';
import { startTestApi, type TestApi } from '../../apps/api/src/api.testkit.js';
import {
  startTestSignaling,
  type TestInstance,
  type TestSignaling,
} from '../../apps/signaling/src/signaling.testkit.js';

let kit: TestSignaling;
let api: TestApi;
let one: TestInstance;
let two: TestInstance;
beforeAll(async () => {
  kit = await startTestSignaling();
  [one, two, api] = await Promise.all([kit.start(), kit.start({ RECONNECT_GRACE_SECONDS: '4' }), startTestApi()]);
  api = api.as(kit.tenant);
});

/** Without chance, the ids of requests can be guessed. */
const platform = { WebSocket: WebSocket as unknown as Platform['WebSocket'], random: () => 0 };
async function call(gateway: TestInstance, roomId: string, permissions?: Permission[]): Promise<Call> {
  const { token } = await kit.invite(roomId, permissions === undefined ? {} : { permissions });
  const joined = await connect({ url: gateway.url.replace(/^http/, 'ws'), token, platform });
  stopAtEnd(() => joined.leave());
  return joined;
}
const never = new Promise(() => undefined);

test('requests between participants are answered over one gateway and over two, by nobody but the participant', async () => {
  const roomId = await kit.newRoom();
  const [ada, bob, cleo] = [await call(one, roomId), await call(two, roomId), await call(one, roomId)];
  const eve = await kit.enter(one.url, roomId);
  await eventually(() => ada.participants.size === 3);
  const from = ada.participant.participantId;
  let asked: (infos: unknown[]) => void = () => undefined;
  const isAsked = new Promise<unknown[]>((resolve) => (asked = resolve));
  let answer: (sum: number) => void = () => undefined;
  const summed = new Promise<number>((resolve) => (answer = resolve));
  bob.handle('sum', (numbers: number[], { participant, ...info }) => {
    asked([numbers, participant?.name, info]);
    return summed;
  });
  cleo.handle('echo', (payload) => payload);
  const sum = ada.request<number>(bob.participant, 'sum', [1, 2, 3]);
  expect(await isAsked).toEqual([[1, 2, 3], 'Ada', { from, method: 'sum', isFromServer: false }]);
  // The id of the first request. The reply of somebody else is ignored.
  await eve.client.ask({ type: 'reply', to: from, askId: '0-1', payload: 666 }, 'ok');
  answer(6);
  expect(await sum).toBe(6);
  const payload = { ä: ['"', null] };
  expect(await ada.request(cleo.participant.participantId, 'echo', payload)).toEqual(payload);
  expect(await ada.request(cleo.participant, 'echo')).toBeNull();
  expect(eve.client.of('ask')).toEqual([]);
});

test('requests that fail say which side has failed, and why', async () => {
  const roomId = await kit.newRoom();
  const [ada, bob, mute] = [await call(one, roomId), await call(two, roomId), await call(one, roomId, ['room:join'])];
  await eventually(() => ada.participants.size === 2 && mute.participants.size === 2);
  const fails = bob.handle('fails', () => Promise.reject(new Error('no such file')));
  bob.handle('large', () => 'x'.repeat(17_000));
  bob.handle('bigint', () => 1n);
  bob.handle('never', () => never);
  const refused = (code: string, message = '') => ({ code, message: expect.stringContaining(message) });
  await expect(ada.request(bob.participant, 'unknown')).rejects.toMatchObject(refused('no_handler'));
  await expect(ada.request(bob.participant, 'fails')).rejects.toMatchObject(refused('handler_failed', 'no such file'));
  await expect(ada.request(bob.participant, 'bigint')).rejects.toMatchObject(refused('handler_failed', 'no JSON'));
  await expect(ada.request(bob.participant, 'large')).rejects.toMatchObject(refused('response_too_large'));
  await expect(ada.request(bob.participant, 'never', 1, { timeoutMs: 100 })).rejects.toMatchObject(
    refused('recipient_timeout', '100 ms. It is in the room'),
  );
  await expect(ada.request('part_x', 'sum')).rejects.toMatchObject(refused('recipient_gone'));
  await expect(ada.request(ada.participant, 'sum')).rejects.toMatchObject(refused('invalid_argument'));
  await expect(ada.request(bob.participant, 'a method')).rejects.toMatchObject(refused('invalid_argument'));
  await expect(ada.request(bob.participant, 'large', 'x'.repeat(17_000))).rejects.toMatchObject(
    refused('payload_too_large'),
  );
  await expect(mute.request(bob.participant, 'large')).rejects.toMatchObject(refused('permission_denied'));
  const abort = new AbortController();
  const given = ada.request(bob.participant, 'never', 1, { signal: abort.signal });
  abort.abort();
  await expect(given).rejects.toMatchObject(refused('aborted'));
  fails();
  await expect(ada.request(bob.participant, 'fails')).rejects.toMatchObject(refused('no_handler'));
  // A participant without the permission cannot answer, and its page learns why.
  const problem = new Promise<{ code: string }>((resolve) => mute.once('problem', resolve));
  mute.handle('sum', () => 6);
  await expect(ada.request(mute.participant, 'sum', 1, { timeoutMs: 500 })).rejects.toMatchObject(
    refused('recipient_timeout'),
  );
  expect((await problem).code).toBe('permission_denied');
  const [left, closed] = [ada.request(bob.participant, 'never'), mute.leave().then(() => bob.leave())];
  await expect(left).rejects.toMatchObject(refused('recipient_gone'));
  await closed;
});

test('the server asks a participant, and gets the answer or the failing side', async () => {
  const roomId = await kit.newRoom();
  const bob = await call(two, roomId, ['room:join']);
  const ask = (participantId: string, body: object) =>
    api.call('POST', `/v1/rooms/${roomId}/participants/${participantId}/requests`, { body });
  const bobs = async (method: string, more: object = {}) => {
    const { body, status } = await ask(bob.participant.participantId, { method, ...more });
    return status === 200 ? body.payload : [status, body.error.code, body.error.message];
  };
  bob.handle('echo', (payload, { from, isFromServer, participant }) => [payload, from, isFromServer, participant]);
  bob.handle('fails', () => Promise.reject(new Error('no such file')));
  bob.handle('large', () => 'x'.repeat(17_000));
  bob.handle('never', () => never);
  // JSON has no undefined.
  expect(await bobs('echo', { payload: { a: ['ä'] } })).toEqual([{ a: ['ä'] }, 'server', true, null]);
  expect(await bobs('echo')).toEqual([null, 'server', true, null]);
  expect(await bobs('unknown')).toEqual([409, 'NO_HANDLER', expect.any(String)]);
  expect(await bobs('fails')).toEqual([409, 'HANDLER_FAILED', expect.stringContaining('no such file')]);
  expect(await bobs('large')).toEqual([409, 'RESPONSE_TOO_LARGE', expect.any(String)]);
  expect(await bobs('never', { timeoutMs: 50 })).toEqual([409, 'PARTICIPANT_TIMED_OUT', expect.any(String)]);
  expect(await bobs('echo', { payload: 'x'.repeat(17_000) })).toEqual([413, 'PAYLOAD_TOO_LARGE', expect.any(String)]);
  expect((await ask('part_0', { method: 'echo' })).body.error.code).toBe('PARTICIPANT_NOT_FOUND');

  // Somebody else who learns the id of the ask answers nothing, and a made-up id reaches no API.
  const [cleo, eve] = [await kit.enter(one.url, roomId), await kit.enter(two.url, roomId)];
  const answered = ask(cleo.participantId, { method: 'sum' });
  const { askId } = await cleo.client.until('ask');
  await eve.client.ask({ type: 'reply', to: 'server', askId, payload: 666 }, 'ok');
  await cleo.client.ask({ type: 'reply', to: 'server', askId, payload: 6 }, 'ok');
  expect((await answered).body).toEqual({ payload: 6 });
  const invented = { type: 'reply', to: 'server', askId: roomId, payload: 1 };
  expect(await eve.client.ask(invented, 'error')).toMatchObject({ code: 'not_found' });

  const left = ask(cleo.participantId, { method: 'sum', timeoutMs: 1000 });
  await cleo.client.until('ask', (asked) => asked.askId !== askId);
  cleo.client.send({ type: 'leave' });
  expect((await left).body.error.code).toBe('PARTICIPANT_NOT_FOUND');
});
