import { MediaError, type IceCandidate, type MediaPeerEvents } from '@callplane/media';
import type { Candidate, PeerTarget } from '@callplane/protocol';
import type { EventEmitter } from 'node:events';
import type { MediaOwner } from './context.js';

/** The media server reports each section of a connection at most once a second; the client learns of one of them. */
export const SLOW_LINK_EVERY_MS = 1_000;

/** The server's candidates of one peer connection. The client gets them after the description that they belong to. */
export class HeldCandidates {
  readonly #session: Pick<MediaOwner, 'send'>;
  readonly #target: PeerTarget;
  #waiting: (IceCandidate | null)[] = [];
  /** The candidates of the latest description, which the client has. */
  #sent: (IceCandidate | null)[] = [];
  #isReleased = false;

  constructor(session: Pick<MediaOwner, 'send'>, target: PeerTarget) {
    this.#session = session;
    this.#target = target;
  }

  add(candidate: IceCandidate | null): void {
    this.#waiting.push(candidate);
    if (this.#isReleased) this.release();
  }

  /**
   * Call this when the client will get another description: keeps later candidates. An ICE restart finds the earlier
   * ones again.
   */
  hold(): void {
    this.#isReleased = false;
    this.#sent = [];
  }

  /** Call this when the client has got the description: sends the candidates so far, and later ones at once. */
  release(): void {
    this.#isReleased = true;
    this.#sent.push(...this.#waiting);
    for (const candidate of this.#waiting.splice(0)) this.#send(candidate);
  }

  /** Call this when the client has another connection: those that were sent over the lost one may not have arrived. */
  repeat(): void {
    if (this.#isReleased) for (const candidate of this.#sent) this.#send(candidate);
  }

  #send(candidate: IceCandidate | null): void {
    this.#session.send({ type: 'candidate', target: this.#target, candidate: candidate as Candidate });
  }
}

/**
 * Gives a candidate of the client to the media server, with only the fields that it needs. Null marks their end.
 * @returns false if the peer connection does not exist (any more): a late candidate is no client error
 */
export async function addCandidate(
  handle: { addCandidate(candidate: IceCandidate | null): Promise<void> } | null,
  candidate: Candidate,
): Promise<boolean> {
  if (handle === null) return false;
  const { candidate: line, sdpMid, sdpMLineIndex } = candidate ?? {};
  try {
    await handle.addCandidate(line === undefined ? null : { candidate: line, sdpMid, sdpMLineIndex });
    return true;
  } catch (error) {
    if (error instanceof MediaError) return false;
    throw error;
  }
}

/** Tells the client when the media server notices losses on one of its connections. */
export function reportSlowLink(
  session: Pick<MediaOwner, 'isConnected' | 'send'>,
  target: PeerTarget,
  handle: Pick<EventEmitter<MediaPeerEvents>, 'on'>,
  now: () => number = () => performance.now(),
): void {
  let reportedAtMs = -Infinity;
  handle.on('slowLink', (lost) => {
    const atMs = now();
    if (!session.isConnected || atMs - reportedAtMs < SLOW_LINK_EVERY_MS) return;
    reportedAtMs = atMs;
    session.send({ type: 'slowLink', target, lost });
  });
}
