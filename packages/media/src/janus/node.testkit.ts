import WebSocket from 'ws';
import { createRtcPeer, stopAtEnd, type RtcPeer, type TestJanus } from '@callplane/testing';
import type { CarriedStream, ListedSection, StreamReference } from '../types.js';
import { MediaNode, type MediaNodeOptions } from './node.js';
import type { MediaPublisher } from './handle.js';
import type { MediaSession } from './session.js';
import type { MediaSubscriber } from './subscriber.js';

export const UP_WITHIN_MS = 60_000;

/** A node connected to a test's Janus, closed at the end of the test file. */
export function nodeOn(
  janus: Pick<TestJanus, 'url' | 'apiSecret' | 'adminKey'>,
  options: Partial<MediaNodeOptions> = {},
): MediaNode {
  const node = new MediaNode({
    id: 'test',
    url: janus.url,
    apiSecret: janus.apiSecret,
    adminKey: janus.adminKey,
    random: () => 0.5,
    allowOutdated: true,
    ...options,
  });
  stopAtEnd(() => node.close());
  return node;
}

export interface Sender {
  session: MediaSession;
  publisher: MediaPublisher;
  peer: RtcPeer;
  /** The reasons of its `closed` events. */
  closed: string[];
}

export interface Receiver {
  session: MediaSession;
  subscriber: MediaSubscriber;
  peer: RtcPeer;
  closed: string[];
  /** The streams of its sections, according to the last offer. */
  carried: CarriedStream[];
  /** Adds and removes streams, and answers the offer. Returns the streams of all sections, or null without an offer. */
  change(add: StreamReference[], remove?: StreamReference[]): Promise<string[] | null>;
}

/** Starts a feed with audio and video, and waits until its peer connection is up. */
export async function startSender(node: MediaNode, roomId: string, feedId: string): Promise<Sender> {
  const session = await node.openSession();
  const publisher = await session.attachPublisher(roomId, feedId);
  const peer = await createRtcPeer();
  const closed: string[] = [];
  publisher.on('closed', (reason) => closed.push(reason));
  const connected = new Promise<void>((resolve) => publisher.once('connected', () => resolve()));
  peer.addAudio();
  peer.addVideo();
  await peer.acceptAnswer(await publisher.publish(await peer.offer()));
  peer.onCandidate((candidate) => void publisher.addCandidate(candidate).catch(() => undefined));
  await connected;
  return { session, publisher, peer, closed };
}

export async function startReceiver(node: MediaNode, roomId: string, label = 'receiver'): Promise<Receiver> {
  const session = await node.openSession();
  const subscriber = await session.attachSubscriber(roomId, label);
  const peer = await createRtcPeer();
  const closed: string[] = [];
  subscriber.on('closed', (reason) => closed.push(reason));
  const nameOf = ({ feedId, mid }: StreamReference) => `${feedId}/${mid}`;
  let trickles = false;
  const change = async (add: StreamReference[], remove: StreamReference[] = []) => {
    const leaving = remove.map(nameOf);
    const removed = receiver.carried.filter((stream) => leaving.includes(nameOf(stream)));
    const staying = receiver.carried.filter((stream) => !removed.includes(stream)).map(nameOf);
    const added = new Map(add.map((stream) => [nameOf(stream), stream]));
    for (const name of staying) added.delete(name);
    const sections = removed.map(({ subscriberMid }) => subscriberMid);
    const offer = await subscriber.update({ add: [...added.values()], remove: sections });
    if (offer === null) return null;
    receiver.carried = carriedIn(offer.sections);
    await subscriber.answer(await peer.answer(offer.sdp));
    if (!trickles) peer.onCandidate((candidate) => void subscriber.addCandidate(candidate).catch(() => undefined));
    trickles = true;
    return receiver.carried.map(nameOf).sort();
  };
  const receiver: Receiver = { session, subscriber, peer, closed, carried: [], change };
  return receiver;
}

/** The streams of the sections that are not idle. */
export function carriedIn(sections: readonly ListedSection[]): CarriedStream[] {
  return sections.flatMap(({ subscriberMid, stream }) => (stream === null ? [] : [{ ...stream, subscriberMid }]));
}

/** The labels (`opaque_id`) of every handle on a Janus, as its administration interface lists them. */
export async function handleLabels({ adminUrl, adminSecret }: TestJanus): Promise<string[]> {
  const socket = new WebSocket(adminUrl, 'janus-admin-protocol');
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  const ask = async (request: Record<string, unknown>): Promise<any> => {
    const answer = new Promise<string>((resolve) => {
      socket.once('message', (data: Buffer) => resolve(data.toString()));
    });
    socket.send(JSON.stringify({ ...request, transaction: 'test', admin_secret: adminSecret }));
    return JSON.parse(await answer);
  };
  const labels: string[] = [];
  for (const session_id of (await ask({ janus: 'list_sessions' })).sessions) {
    // A session that has just ended has no list.
    for (const handle_id of (await ask({ janus: 'list_handles', session_id })).handles ?? []) {
      labels.push((await ask({ janus: 'handle_info', session_id, handle_id })).info?.opaque_id ?? '');
    }
  }
  socket.terminate();
  return labels;
}
