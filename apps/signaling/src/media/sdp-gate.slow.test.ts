import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { PERMISSIONS } from '@callplane/core';
import { MediaError, MediaNodes, type MediaNode, type MediaSession } from '@callplane/media';
import { createRtcPeer, eventually, startTestJanus, stopAtEnd } from '@callplane/testing';
import fc from 'fast-check';
import { RequestFailure } from '../clients/client.js';
import { checkAnswer, checkCandidate, checkOffer } from './sdp-gate.js';
import { descriptionWith, SDP_NUMBERS, SDP_TRACKS } from './sdp-numbers.testkit.js';

const ROOM = 'room';
const RUNS = 150;

let node: MediaNode;
let session: MediaSession;
let feeds = 0;
beforeAll(async () => {
  const { url, apiSecret, adminKey } = await startTestJanus();
  const addresses = [{ id: 'm1', url }];
  const nodes = MediaNodes.open({ addresses, apiSecret, adminKey, random: Math.random, readRegistry: undefined });
  stopAtEnd(() => nodes.close());
  [node] = nodes.all() as [MediaNode];
  await node.untilUp(60_000);
  await node.ensureRoom(ROOM);
  session = await node.openSession();
  const peer = await createRtcPeer();
  peer.addAudio();
  peer.addVideo();
  const ada = await session.attachPublisher(ROOM, 'ada');
  await peer.acceptAnswer(await ada.publish(await peer.offer()));
  peer.onCandidate((candidate) => void ada.addCandidate(candidate));
  await eventually(() => peer.connectionState() === 'connected');
});

/** A frozen handler thread answers no `join`, and a crash ends the session. */
const answers = async () => (await session.attachPublisher(ROOM, `probe-${(feeds += 1)}`)).detach();
afterEach(answers);

/** Gives the media server descriptions that pass the gate, as an offer, an answer and a candidate. */
async function feed(sdp: string): Promise<boolean> {
  const offer = passed(() => checkOffer(sdp, SDP_TRACKS, PERMISSIONS).sdp);
  const answer = passed(() => checkAnswer(sdp.replaceAll('a=sendonly', 'a=recvonly')).sdp);
  const candidate = passed(() => checkCandidate(/^a=(candidate:.*)$/m.exec(sdp)?.[1]?.trimEnd() ?? ''));
  feeds += 1;
  const publisher = await session.attachPublisher(ROOM, `feed-${feeds}`);
  const subscriber = await session.attachSubscriber(ROOM, `subscriber-${feeds}`);
  const streams = ['0', '1'].map((mid) => ({ feedId: 'ada', mid }));
  await subscriber.update({ add: streams, remove: [] });
  await Promise.all([
    offer === null ? null : publisher.publish(offer).catch(refused),
    answer === null ? null : subscriber.answer(answer).catch(refused),
  ]);
  if (candidate !== null) await publisher.addCandidate({ candidate, sdpMid: '0' }).catch(refused);
  await Promise.all([publisher.detach(), subscriber.detach()]);
  return offer !== null;
}

function passed(check: () => string): string | null {
  try {
    return check();
  } catch (error) {
    if (error instanceof RequestFailure) return null;
    throw error;
  }
}

/** The media server may refuse a description, but it has to answer. */
function refused(error: unknown): void {
  if (!(error instanceof MediaError) || error.code === 'timeout' || error.code === 'unavailable') throw error;
}

describe('a media server', () => {
  test('answers whatever number at its bounds passes the gate', async () => {
    expect(await feed(descriptionWith(new Map()))).toBe(true);
    for (const [index, { min, max }] of SDP_NUMBERS.entries()) {
      for (const value of [min, max]) expect(await feed(descriptionWith(new Map([[index, `${value}`]])))).toBe(true);
    }
  });

  test('answers whatever passes of many numbers, at their bounds and beyond', async () => {
    const number = fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom('min', 'max', 'usual') },
      { weight: 1, arbitrary: fc.constantFrom('beyond', '-1', '1e5', '4294967295', '4294967296', '007', 'NaN', '') },
    );
    const changes = fc.dictionary(fc.nat(SDP_NUMBERS.length - 1).map(String), number, { maxKeys: 12 });
    await fc.assert(
      fc.asyncProperty(changes, async (chosen) => {
        const numbers = Object.entries(chosen).map(([index, choice]): [number, string] => {
          const { min, max, usual } = SDP_NUMBERS[Number(index)]!;
          const named: Record<string, string> = { min: `${min}`, max: `${max}`, usual, beyond: `${max + 1n}` };
          return [Number(index), named[choice] ?? choice];
        });
        await feed(descriptionWith(new Map(numbers)));
        await answers();
      }),
      { numRuns: RUNS },
    );
  });
});
