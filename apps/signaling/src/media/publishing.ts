import { MediaError, type IceCandidate, type MediaNode, type MediaPublisher } from '@callplane/media';
import type { Candidate, ClientMessages, PeerTarget } from '@callplane/protocol';
import { RequestFailure } from '../connections/request-failure.js';
import { toIceCandidate } from './candidates.js';
import { judgeOffer, type SendingTrack } from './sdp-gate.js';
import { mediaUnavailable, type MediaHost, type MediaPlace } from './session-media.js';

/** How often writing the tracks is tried again while the database is away, in milliseconds. */
const ANNOUNCE_AGAIN_MS = 1000;

interface Active {
  handle: MediaPublisher;
  node: MediaNode;
  /** The client's RTCPeerConnection behind it. */
  peerConnection: string;
  tracks: SendingTrack[];
  /** ICE and DTLS are up. */
  connected: boolean;
  announced: boolean;
  /** Counts the offers: what an older one says is not written over a newer one. */
  offers: number;
  /** Server's candidates that come before the client has the answer; null once it has. */
  held: (IceCandidate | null)[] | null;
}

/** The sending half of a session's media. */
export class Publishing {
  readonly #host: MediaHost;
  readonly #place: () => MediaPlace | null;
  readonly #onLost: (target: PeerTarget) => void;
  #active: Active | null = null;
  /** A feed that has ended by itself is looked into before another one begins: it may have been removed. */
  #ending: Promise<unknown> = Promise.resolve();
  #attachments = 0;
  #closed = false;

  constructor(host: MediaHost, place: () => MediaPlace | null, onLost: (target: PeerTarget) => void) {
    this.#host = host;
    this.#place = place;
    this.#onLost = onLost;
  }

  get isActive(): boolean {
    return this.#active !== null;
  }

  get isAnnounced(): boolean {
    return this.#active?.announced === true;
  }

  async publish(request: ClientMessages['publish']): Promise<void> {
    const judged = judgeOffer(request.sdp, request.tracks, this.#host.permissions);
    if (!judged.ok) throw new RequestFailure(judged.refusal.code, judged.refusal.message, judged.refusal.details);
    await this.#ending;
    const place = this.#place();
    if (place === null) throw mediaUnavailable();
    let active = this.#active;
    // Another RTCPeerConnection has other keys: it cannot go on with this one's handle.
    if (active !== null && (active.peerConnection !== judged.peerConnection || active.node !== place.node)) {
      await this.drop();
      active = null;
    }
    active ??= await this.#attach(place.node, judged.peerConnection);
    let answer: string;
    try {
      answer = await active.handle.publish(judged.sdp);
    } catch (error) {
      await this.#failed(active, error);
      throw toFailure(error);
    }
    if (this.#active !== active) throw mediaUnavailable();
    active.tracks = judged.tracks;
    active.offers += 1;
    this.#host.send({
      type: 'published',
      ...(request.id === undefined ? {} : { replyTo: request.id }),
      sdp: answer,
    });
    for (const candidate of active.held ?? []) this.#sendCandidate(candidate);
    active.held = null;
    for (const { mid, muted } of active.tracks) if (muted) await this.#moderate(active, mid, true);
    if (active.connected) await this.#announce(active);
  }

  async mute(trackId: string, muted: boolean): Promise<void> {
    const active = this.#active;
    const track = active?.tracks.find((one) => one.trackId === trackId);
    const stored = this.#host
      .snapshot()
      ?.sessions.find(({ sessionId }) => sessionId === this.#host.sessionId)
      ?.tracks.some((one) => one.trackId === trackId);
    if (track === undefined && stored !== true) throw new RequestFailure('not_found');
    if (track !== undefined) track.muted = muted;
    // Before it is announced, the announcement will say so.
    if (active?.announced === true || stored === true) await this.#host.setTrackMuted(trackId, muted);
    if (active !== null && track !== undefined) await this.#moderate(active, track.mid, muted);
  }

  async addCandidate(candidate: Candidate): Promise<boolean> {
    const active = this.#active;
    if (active === null) return false;
    try {
      await active.handle.addCandidate(toIceCandidate(candidate));
      return true;
    } catch (error) {
      if (error instanceof MediaError) return false;
      throw error;
    }
  }

  /** Gives the handle back, if there is one. Tracks stay in the database. */
  async drop(): Promise<void> {
    const active = this.#active;
    this.#active = null;
    if (active === null) return;
    active.handle.removeAllListeners();
    await active.handle.detach();
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.drop();
  }

  async #attach(node: MediaNode, peerConnection: string): Promise<Active> {
    this.#attachments += 1;
    // Never used again: what others subscribe to by this name is this attachment and no later one.
    const feedId = `${this.#host.sessionId}-${this.#host.connectionNumber}-${this.#attachments}`;
    let handle: MediaPublisher;
    try {
      await node.ensureRoom(this.#host.roomId);
      handle = await node.attachPublisher(this.#host.roomId, feedId);
    } catch (error) {
      throw toFailure(error);
    }
    const active: Active = {
      handle,
      node,
      peerConnection,
      tracks: [],
      connected: false,
      announced: false,
      offers: 0,
      held: [],
    };
    if (this.#closed) {
      await handle.detach();
      throw mediaUnavailable();
    }
    this.#active = active;
    handle.on('candidate', (candidate) => {
      if (this.#active !== active) return;
      if (active.held === null) this.#sendCandidate(candidate);
      else active.held.push(candidate);
    });
    handle.on('connected', () => {
      active.connected = true;
      if (this.#active === active && active.offers > 0) void this.#announce(active);
    });
    handle.on('closed', (reason) => this.#ended(active, reason));
    return active;
  }

  #sendCandidate(candidate: IceCandidate | null): void {
    this.#host.send({ type: 'candidate', target: 'publisher', candidate: candidate as Candidate });
  }

  /** Others learn of the tracks once media can flow. Never rejects: tries until it is written or replaced. */
  async #announce(active: Active): Promise<void> {
    const { offers } = active;
    const tracks = active.tracks.map((track) => ({ ...track, feedId: active.handle.feedId }));
    while (this.#active === active && active.offers === offers) {
      try {
        if (await this.#host.publishTracks(tracks)) {
          active.announced = true;
          await this.#catchUpMutes(active, tracks);
          return;
        }
        // Resumed meanwhile, its number is another one; ended, there is nothing to tell.
        if (!(await this.#host.stillLive())) return;
      } catch (error) {
        this.#host.logger.warn('tracks not announced', { sessionId: this.#host.sessionId, error });
        await new Promise((resolve) => setTimeout(resolve, ANNOUNCE_AGAIN_MS));
      }
    }
  }

  /** What was muted or unmuted while the tracks were being written. */
  async #catchUpMutes(active: Active, written: readonly SendingTrack[]): Promise<void> {
    for (const { trackId, muted } of active.tracks) {
      const stored = written.find((track) => track.trackId === trackId);
      if (stored !== undefined && stored.muted !== muted) await this.#host.setTrackMuted(trackId, muted);
    }
  }

  /** The media server's own doing: ICE failed, or somebody threw the feed out. */
  #ended(active: Active, reason: string): void {
    if (this.#active !== active) return;
    this.#active = null;
    active.handle.removeAllListeners();
    this.#host.logger.info('publisher closed', { sessionId: this.#host.sessionId, reason });
    this.#ending = Promise.all([active.handle.detach(), this.#host.stillLive().catch(() => true)]).then(([, live]) => {
      if (live && !this.#closed) this.#onLost('publisher');
    });
  }

  async #failed(active: Active, error: unknown): Promise<void> {
    // A renegotiation that is refused leaves what was before; a dead handle leaves nothing.
    const keep = error instanceof MediaError && error.code === 'invalid_sdp' && active.offers > 0;
    if (keep || this.#active !== active) return;
    const had = active.offers > 0;
    await this.drop();
    if (had) this.#onLost('publisher');
  }

  async #moderate(active: Active, mid: string, muted: boolean): Promise<void> {
    try {
      await active.node.moderate(this.#host.roomId, active.handle.feedId, mid, muted);
    } catch (error) {
      // The others are told that it is muted either way; the client has stopped sending by itself.
      this.#host.logger.warn('track not moderated', { sessionId: this.#host.sessionId, error });
    }
  }
}

function toFailure(error: unknown): unknown {
  if (!(error instanceof MediaError)) return error;
  if (error.code === 'invalid_sdp') {
    return new RequestFailure('invalid_sdp', 'The media server refused the description.', undefined, { cause: error });
  }
  if (error.code === 'closed') return new RequestFailure('conflict', undefined, undefined, { cause: error });
  return mediaUnavailable(error);
}
