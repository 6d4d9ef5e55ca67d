import type { PeerTarget, ResumeRequest } from '../protocol.generated.js';
import type { Publisher } from './publisher.js';
import type { Subscriber } from './subscriber.js';

/** The peer connections that exist, and the last offer that was answered over the receiving one. */
export type PresentPeers = Pick<ResumeRequest, 'peers' | 'offerId'>;

export function presentPeers(publisher: Publisher, subscriber: Subscriber): PresentPeers {
  const peers: PeerTarget[] = [];
  if (publisher.connection !== undefined) peers.push('publisher');
  if (subscriber.connection !== undefined) peers.push('subscriber');
  const { lastAnswered } = subscriber;
  return lastAnswered === undefined ? { peers } : { peers, offerId: lastAnswered };
}
