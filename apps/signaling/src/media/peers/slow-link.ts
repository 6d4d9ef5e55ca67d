import type { MediaPeerEvents } from '@callplane/media';
import type { PeerTarget } from '@callplane/protocol';
import type { EventEmitter } from 'node:events';
import type { MediaHost } from '../media-host.js';

/** The media server reports each section of a connection at most once a second; the client learns of one of them. */
export const SLOW_LINK_EVERY_MS = 1_000;

type Handle = Pick<EventEmitter<MediaPeerEvents>, 'on'>;

/** Tells the client when the media server notices losses on one of its connections. */
export function reportSlowLink(
  host: Pick<MediaHost, 'isConnected' | 'send'>,
  target: PeerTarget,
  handle: Handle,
  now: () => number = () => performance.now(),
): void {
  let reportedAtMs = -Infinity;
  handle.on('slowLink', (lost) => {
    const atMs = now();
    if (!host.isConnected || atMs - reportedAtMs < SLOW_LINK_EVERY_MS) return;
    reportedAtMs = atMs;
    host.send({ type: 'slowLink', target, lost });
  });
}
