import type { PeerTarget } from '../protocol.generated.js';
import type { PresentPeers } from '../signaling/session.js';
import type { Publisher } from './publisher.js';
import type { Subscriber } from './subscriber.js';

export function presentPeers(publisher: Publisher, subscriber: Subscriber): PresentPeers {
  const peers: PeerTarget[] = [];
  if (publisher.connection !== undefined) peers.push('publisher');
  if (subscriber.connection !== undefined) peers.push('subscriber');
  const { lastAnswered } = subscriber;
  return lastAnswered === undefined ? { peers } : { peers, offerId: lastAnswered };
}
