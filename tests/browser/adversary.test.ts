import { randomBytes } from 'node:crypto';
import { beforeAll, beforeEach, expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import { openCall, type Call } from './call.testkit.js';
import { startModifiedGateway, unchanged, type ModifiedGateway } from './modified-gateway.testkit.js';
import { mediaFlows, type JoinOptions, type ParticipantPage } from './pages.testkit.js';

/** A hostile gateway and a hostile media server: nobody sees or hears what another participant did not send as shown. */

/** Digests by the person and the track that they are shown as. */
type Digests = Record<string, string[] | undefined>;
interface Notes {
  given: Digests;
  played: Digests;
}
interface Counts {
  /** By kind, since the attack began. */
  attacked: Record<string, number | undefined>;
  played: number;
}
type Ids = { sessionId: string; participantId: string };

/** More frames than failures in a row make a track undecryptable. */
const ATTACKED_FRAMES = 15;
let stage: Call['stage'];
let enter: Call['enter'];
let gateway: ModifiedGateway;
beforeAll(async () => {
  ({ stage, enter } = await openCall());
  gateway = await startModifiedGateway(stage.url);
});
beforeEach(() => {
  Object.assign(gateway, { modify: unchanged, modifySent: unchanged });
});

const ALL = ['Ada/camera', 'Ada/microphone', 'Bob/camera', 'Bob/microphone'];
const notesOf = (page: ParticipantPage) => page.ask<Notes>('spied', 'notes');
const countsOf = (page: ParticipantPage) => page.ask<Counts>('spied', 'counts');
const undecryptableAt = async (page: ParticipantPage) => (await page.ask<string[]>('undecryptable')).sort();
/** Resolves once the page reports exactly these tracks as undecryptable. */
const refuses = (page: ParticipantPage, tracks: string[]) =>
  eventually(async () => {
    const reported = await undecryptableAt(page);
    if (String(reported) !== String(tracks)) throw new Error(`undecryptable: ${reported.join()}`);
    return true;
  });

/** Ada and Bob send to each other; further pages join through the modified gateway and only receive. */
async function callOfTwo() {
  const roomId = await stage.newEncryptedRoom();
  const key = randomBytes(32).toString('base64url');
  const join = (name: string, more: Partial<JoinOptions> = {}) =>
    enter(roomId, name, { encryption: { key }, isSpied: true, ...more });
  const [ada, bob] = await Promise.all([join('Ada'), join('Bob')]);
  await mediaFlows([ada, bob]);
  const carl = () => join('Carl', { url: gateway.url, publish: false, adaptive: false });
  const ids = await Promise.all([ada, bob].map((page) => page.ask<Ids>('ids')));
  return { ada, bob, carl, ids: ids as [Ids, Ids] };
}

/** Each frame that the page may play was sent as it is shown, and as often. */
async function assertPlayedIsSent(page: ParticipantPage, senders: ParticipantPage[]): Promise<void> {
  const { played } = await notesOf(page);
  const left = new Map<string, number>();
  const add = (shownAs: string, digests: string[] = [], step: number) =>
    digests.forEach((digest) => left.set(`${shownAs} ${digest}`, (left.get(`${shownAs} ${digest}`) ?? 0) + step));
  for (const { given } of await Promise.all(senders.map(notesOf)))
    for (const [sentAs, digests] of Object.entries(given)) add(sentAs, digests, 1);
  for (const [shownAs, digests] of Object.entries(played)) add(shownAs, digests, -1);
  expect([...left].filter(([, count]) => count < 0)).toEqual([]);
}

const swapped = (text: string, one: string, other: string): string =>
  text
    .split(one)
    .map((part) => part.replaceAll(other, one))
    .join(other);

test.each<[string, (text: string, ids: [Ids, Ids]) => string, string[]]>([
  ['the names of two participants', (text) => swapped(text, '"Ada"', '"Bob"'), ALL],
  ['the name of a participant', (text) => text.replaceAll('"Ada"', '"Eve"'), ['Eve/camera', 'Eve/microphone']],
  ['their ids', (text, [ada, bob]) => swapped(text, ada.participantId, bob.participantId), ALL],
  ['their sessions', (text, [ada, bob]) => swapped(text, ada.sessionId, bob.sessionId), ALL],
  [
    'the sections of their media',
    (text, [ada, bob]) => {
      const { type, tracks, ...rest } = JSON.parse(text);
      if (type !== 'subscribed') return text;
      const participants = { [ada.participantId]: bob.participantId, [bob.participantId]: ada.participantId };
      const moved = tracks.map((track: any) => ({ ...track, participantId: participants[track.participantId] }));
      return JSON.stringify({ type, tracks: moved, ...rest });
    },
    ALL,
  ],
  [
    'a camera into a screen',
    (text) => text.replaceAll('"source":"camera"', '"source":"screen"'),
    ['Ada/camera', 'Bob/camera'],
  ],
])('a gateway that changes %s makes nobody appear as another one', async (_, modified, refused) => {
  const { ada, bob, carl, ids } = await callOfTwo();
  gateway.modify = (text) => modified(text, ids);
  const page = await carl();
  await refuses(page, refused);
  await assertPlayedIsSent(page, [ada, bob]);
  const received = await page.ask<Record<string, { frames: number }>>('received');
  for (const track of refused.filter((one) => one.endsWith('camera')))
    expect(received[track.split('/')[0]!]!.frames).toBe(0);
});

test('a gateway that lets a client without encryption in, and hides that from both sides, gets nothing played', async () => {
  gateway.modify = (text) => text.replaceAll('"encryption":"required"', '"encryption":"none"');
  gateway.modifySent = (text) => text.replace('"type":"publish"', '"type":"publish","encrypted":true');
  const roomId = await stage.newEncryptedRoom();
  const carl = await enter(roomId, 'Carl', {
    encryption: { key: randomBytes(32).toString('base64url') },
    publish: false,
  });
  const eve = await enter(roomId, 'Eve', { url: gateway.url });
  expect(await eve.ask('others')).toEqual({ Carl: [] });
  await refuses(carl, ['Eve/camera', 'Eve/microphone']);
  expect((await carl.ask('received')).Eve.frames).toBe(0);
});

test('a media server that repeats, cuts, changes or re-addresses frames gets none of them played', async () => {
  const { ada, bob, carl } = await callOfTwo();
  const page = await carl();
  const isAttacked = () =>
    eventually(async () => {
      const { attacked } = await countsOf(page);
      return ['audio', 'video'].every((kind) => (attacked[kind] ?? 0) > ATTACKED_FRAMES);
    });
  const playsMore = async () => {
    const before = (await countsOf(page)).played;
    await eventually(async () => (await countsOf(page)).played > before + 30);
    await refuses(page, []);
  };
  for (const attack of ['replay', 'cut', 'flip', 'swap']) {
    await playsMore();
    await page.ask('attack', attack);
    await isAttacked();
    await refuses(page, ALL);
    const before = (await countsOf(page)).played;
    await page.ask('attack', attack);
    await isAttacked();
    expect({ attack, played: (await countsOf(page)).played - before }).toEqual({ attack, played: 0 });
    await page.ask('attack', 'none');
  }
  await playsMore();
  await assertPlayedIsSent(page, [ada, bob]);
});

test('a gateway that repeats, re-addresses or invents messages gets none of them shown', async () => {
  const { ada, bob, carl, ids } = await callOfTwo();
  const page = await carl();
  const { participantId } = await page.ask<Ids>('ids');
  const [adasId, bobsId] = ids.map((one) => one.participantId) as [string, string];
  const shownTo = async (one: ParticipantPage) =>
    (await one.events()).filter(({ name }) => name === 'message').map(({ what }) => what.data);
  const refusedBy = async (one: ParticipantPage) =>
    (await one.events()).filter(({ name }) => name === 'encryptionError').map(({ what }) => what.reason);
  await ada.ask('send', 'to all');
  await ada.ask('sendTo', ['to Carl', participantId]);
  await eventually(async () => (await shownTo(page)).length === 2);
  const [toAll = ''] = gateway.heard.filter((text) => text.includes('"type":"message"')).slice(-2);
  gateway.say(toAll);
  gateway.say(swapped(toAll, adasId, bobsId));
  gateway.say(JSON.stringify({ ...JSON.parse(toAll), data: 'invented' }));
  await eventually(async () => (await refusedBy(page)).length === 3);
  expect(await refusedBy(page)).toEqual(['replayed', 'wrong_key', 'malformed']);
  expect(await shownTo(page)).toEqual(['to all', 'to Carl']);
  gateway.modifySent = (text) => text.replace(`"to":["${adasId}"]`, `"to":["${bobsId}"]`);
  await page.ask('sendTo', ['to Ada', adasId]);
  await eventually(async () => (await refusedBy(bob)).length === 1);
  expect(await refusedBy(bob)).toEqual(['wrong_recipient']);
  expect([await shownTo(ada), await shownTo(bob)]).toEqual([[], ['to all']]);
});
