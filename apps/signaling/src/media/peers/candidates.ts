import { MediaError, type IceCandidate } from '@callplane/media';
import type { Candidate, PeerTarget } from '@callplane/protocol';
import type { MediaHost } from '../media-host.js';

/** Maximum number of candidates that are repeated. Media servers find one or two for each address. */
const REPEATED_MAX = 50;

/** The server's candidates of one peer connection. The client gets them after the description that they belong to. */
export class HeldCandidates {
  readonly #host: Pick<MediaHost, 'send'>;
  readonly #target: PeerTarget;
  readonly #found: (IceCandidate | null)[] = [];
  #isReleased = false;

  constructor(host: Pick<MediaHost, 'send'>, target: PeerTarget) {
    this.#host = host;
    this.#target = target;
  }

  add(candidate: IceCandidate | null): void {
    if (this.#found.length < REPEATED_MAX) this.#found.push(candidate);
    if (this.#isReleased) this.#send(candidate);
  }

  /** Call this when the client has got the description: sends the candidates so far, and later ones at once. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.repeat();
  }

  /** Call this when the client has another connection: those that were sent over the lost one may not have arrived. */
  repeat(): void {
    if (this.#isReleased) for (const candidate of this.#found) this.#send(candidate);
  }

  #send(candidate: IceCandidate | null): void {
    this.#host.send({ type: 'candidate', target: this.#target, candidate: candidate as Candidate });
  }
}

/** @returns false if the peer connection does not exist (any more): a late candidate is no client error */
export async function addCandidate(
  handle: { addCandidate(candidate: IceCandidate | null): Promise<void> } | undefined,
  candidate: Candidate,
): Promise<boolean> {
  if (handle === undefined) return false;
  try {
    await handle.addCandidate(toIceCandidate(candidate));
    return true;
  } catch (error) {
    if (error instanceof MediaError) return false;
    throw error;
  }
}

/** Keeps only the fields that the media server needs. Null signals the end of candidates. */
function toIceCandidate(candidate: Candidate): IceCandidate | null {
  if (candidate === null) return null;
  return { candidate: candidate.candidate, sdpMid: candidate.sdpMid, sdpMLineIndex: candidate.sdpMLineIndex };
}
