import { MediaError, type IceCandidate } from '@callplane/media';
import type { Candidate, PeerTarget } from '@callplane/protocol';
import type { MediaHost } from '../media-host.js';

/** Maximum number of candidates that are repeated. Media servers find one or two for each address. */
const REPEATED_MAX = 50;

/** The server's candidates of one peer connection. The client gets them after the description that they belong to. */
export class HeldCandidates {
  readonly #host: Pick<MediaHost, 'send'>;
  readonly #target: PeerTarget;
  /** Without repetitions, in the order in which the client needs them. */
  readonly #found: (IceCandidate | null)[] = [];
  /** The number of those in `#found` that were sent. */
  #sent = 0;
  #isReleased = false;

  constructor(host: Pick<MediaHost, 'send'>, target: PeerTarget) {
    this.#host = host;
    this.#target = target;
  }

  add(candidate: IceCandidate | null): void {
    // After an ICE restart the media server finds the same candidates again.
    const known = this.#found.findIndex((one) => one?.candidate === candidate?.candidate);
    if (known >= 0) this.#found.splice(known, 1);
    if (known >= 0 && known < this.#sent) this.#sent -= 1;
    if (this.#found.length < REPEATED_MAX) this.#found.push(candidate);
    else if (this.#isReleased) this.#send(candidate);
    if (this.#isReleased) this.#sendFrom(this.#sent);
  }

  /** Call this when the client will get another description, perhaps with an ICE restart: keeps later candidates. */
  hold(): void {
    this.#isReleased = false;
  }

  /** Call this when the client has got the description: sends the candidates so far, and later ones at once. */
  release(): void {
    this.#isReleased = true;
    this.#sendFrom(this.#sent);
  }

  /** Call this when the client has another connection: those that were sent over the lost one may not have arrived. */
  repeat(): void {
    if (this.#isReleased) this.#sendFrom(0);
  }

  #sendFrom(first: number): void {
    for (const candidate of this.#found.slice(first)) this.#send(candidate);
    this.#sent = this.#found.length;
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
