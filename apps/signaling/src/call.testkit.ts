import { createRtcPeer, eventually, type RtcPeer, type RtcTrack } from '@callplane/testing';
import type { ServerMessage } from '@callplane/protocol';
import type { TestClient } from './client.testkit.js';
import type { Joined, TestSignaling } from './signaling.testkit.js';

/** A track that a client publishes, again over each new peer connection. */
export interface SentTrack {
  trackId: string;
  source: 'microphone' | 'camera' | 'screen';
  /** Adds the track to a new peer. */
  add(peer: RtcPeer): RtcTrack;
}

export const MIC: SentTrack = { trackId: 'mic', source: 'microphone', add: (peer) => peer.addAudio() };
export const CAM: SentTrack = { trackId: 'cam', source: 'camera', add: (peer) => peer.addVideo() };

export type TestCall = ReturnType<typeof startCall>;

/**
 * A client with media that obeys docs/signaling.md: answers, candidates, and reactions to `mediaReset`.
 * @param republishes false for tests that publish again by themselves after a `mediaReset` of the publisher
 */
export function startCall(kit: TestSignaling, joined: Joined, { republishes = true } = {}) {
  let { client } = joined;
  const receiving = startReceiving(() => client);
  const sending = startSending(() => client);
  let last = Promise.resolve();
  const failures: unknown[] = [];
  /** One task after another. One that fails holds up no other, and fails `end()`. */
  const serially = (task: () => unknown) =>
    (last = last.then(task).then(noResult, (error: unknown) => void failures.push(error)));
  const receive = (message: ServerMessage) => {
    if (message.type === 'mediaReset' && message.targets.includes('publisher') && republishes) sending.again();
    void serially(async () => {
      if (message.type === 'offer') await receiving.answer(message);
      else if (message.type === 'mediaReset' && message.targets.includes('subscriber')) receiving.close();
    });
  };
  // Includes the messages that have arrived already.
  client.all(receive);

  return {
    ...joined,
    get client(): TestClient {
      return client;
    },
    /** The current peer that sends; undefined before `publish`. */
    publisher: sending.peer,
    /** The current peer that receives; undefined before an offer, and after a `mediaReset` until the next one. */
    subscriber: receiving.peer,
    /** Publishes exactly these tracks, over the same peer as before. */
    publish: (tracks: readonly SentTrack[]): Promise<void> => sending.publish(tracks, false),
    publishAnew: (tracks: readonly SentTrack[]): Promise<void> => sending.publish(tracks, true),
    /** Resumes the session with the same peers, as far as the gateway says that they continue. */
    async resume(url: string, more: object = {}): ReturnType<TestSignaling['resume']> {
      const offerId = receiving.answered();
      const known = offerId === undefined ? {} : { offerId };
      const resumed = await kit.resume(url, joined.welcome, { ...known, ...more });
      client = resumed.client;
      if (!resumed.media.continued) await serially(receiving.close);
      client.all(receive);
      return resumed;
    },
    /** Idempotent. Rejects if the client could not process a message of the gateway. */
    async end(): Promise<void> {
      client.leave();
      await Promise.all([sending.end(), serially(receiving.close)]);
      if (failures.length > 0)
        throw new AggregateError(failures, 'the client could not process messages of the gateway');
    },
  };
}

const noResult = () => undefined;

/** The receiving half. An offer without a peer creates one. */
function startReceiving(client: () => TestClient) {
  let peer: RtcPeer | undefined;
  let answered: number | undefined;
  return {
    peer: () => peer,
    answered: () => answered,
    close: () => {
      peer?.close();
      peer = undefined;
    },
    answer: async ({ offerId, sdp }: { offerId: number; sdp: string }) => {
      const isNew = peer === undefined;
      const current = (peer ??= await createRtcPeer());
      const answer = await current.answer(sdp);
      answered = offerId;
      client().send({ type: 'answer', offerId, sdp: answer });
      if (!isNew) return;
      current.onCandidate((candidate) => client().send({ type: 'candidate', target: 'subscriber', candidate }));
    },
  };
}

/** The publishing half: one publication after another. */
function startSending(client: () => TestClient) {
  let peer: RtcPeer | undefined;
  let wanted: readonly SentTrack[] = [];
  let added = new Map<string, RtcTrack>();
  let last = Promise.resolve();
  let isEnded = false;
  const replace = async () => {
    peer?.close();
    if (isEnded) throw new Error('The call has ended.');
    peer = await createRtcPeer();
    added = new Map();
  };
  const publish = async (tracks: readonly SentTrack[], isAnew: boolean) => {
    const isNew = isAnew || peer === undefined;
    if (isNew) await replace();
    const current = peer!;
    wanted = tracks;
    for (const { trackId, add } of tracks) if (!added.has(trackId)) added.set(trackId, add(current));
    const sdp = await current.offer();
    const declared = tracks.map(({ trackId, source }) => ({ trackId, source, mid: added.get(trackId)!.mid() }));
    await current.acceptAnswer(await answerTo(client(), { sdp, tracks: declared }));
    if (isNew) {
      current.onCandidate((candidate) => client().send({ type: 'candidate', target: 'publisher', candidate }));
    }
  };
  const run = (task: () => Promise<void>) => {
    const done = last.then(task);
    last = done.catch(() => undefined);
    return done;
  };
  return {
    peer: () => peer,
    publish: (tracks: readonly SentTrack[], isAnew: boolean) => run(() => publish(tracks, isAnew)),
    /** The connection may end meanwhile; then the test waits for the media in vain, and says so. */
    again: () => void run(() => publish(wanted, true)).catch(() => undefined),
    /** Also closes the peer that a publication in flight makes. */
    end: () => {
      isEnded = true;
      peer?.close();
      return run(async () => peer?.close());
    },
  };
}

/** Publishes again, as clients do, while the media server does not answer in time. @returns the answer */
async function answerTo(client: TestClient, offer: { sdp: string; tracks: object[] }): Promise<string> {
  const answer = await eventually(async () => {
    if (client.closed !== null) return { type: 'closed' as const };
    const reply = await client.request({ type: 'publish', ...offer });
    return reply.type === 'error' && reply.code === 'media_unavailable' ? null : reply;
  });
  if (answer.type !== 'published') throw new Error(`answered ${JSON.stringify(answer)} instead of published`);
  return answer.sdp;
}

/** Resolves once more than three further frames have arrived at the current peer. */
export async function flows(peer: () => RtcPeer | undefined, kind: 'audio' | 'video'): Promise<void> {
  const now = () => ({ peer: peer(), frames: peer()?.framesReceived(kind) ?? 0 });
  let before = now();
  await eventually(() => {
    const { peer: current, frames } = now();
    if (before.peer !== current) before = { peer: current, frames };
    return frames > before.frames + 3;
  });
}
