import {
  MediaError,
  type IceCandidate,
  type MediaNode,
  type MediaSubscriber,
  type StreamReference,
  type SubscriberOffer,
} from '@callplane/media';
import {
  PROTOCOL_LIMITS,
  type Candidate,
  type ClientMessages,
  type Layer,
  type PeerTarget,
  type ServerMessages,
  type TrackReference,
} from '@callplane/protocol';
import { RequestFailure } from '../connections/request-failure.js';
import { toIceCandidate } from './candidates.js';
import { judgeAnswer } from './sdp-gate.js';
import { mediaUnavailable, type MediaHost, type MediaPlace } from './session-media.js';

/** How long a client may take to answer an offer, in milliseconds. */
const ANSWER_WITHIN_MS = 15_000;
/** A stream that the media server did not know is asked for again after so long, in milliseconds. */
const ABSENT_AGAIN_MS = 1000;
/** After failures in a row, in milliseconds; the last one stays. */
const FAILED_AGAIN_MS = [250, 1000, 2000, 5000, 10_000, 30_000];
/** Choices that a client may make beside the room's tracks, e.g. for participants that left. */
const CHOICES_MAX = 2 * PROTOCOL_LIMITS.subscriptionsMax;

interface Active {
  handle: MediaSubscriber;
  node: MediaNode;
  /** What the media server sends, by track. */
  streams: Map<string, StreamReference>;
  subscriberMids: Map<string, string>;
  /** The layer that was selected, by track. */
  layers: Map<string, Layer>;
  /** What it did not know, by track. */
  absent: Map<string, StreamReference>;
  outstanding: ServerMessages['offer'] | null;
  offered: boolean;
  held: (IceCandidate | null)[] | null;
}

/** The receiving half of a session's media: what is wanted against what is received, one offer at a time. */
export class Subscribing {
  readonly #host: MediaHost;
  readonly #place: () => MediaPlace | null;
  readonly #onLost: (target: PeerTarget, pauseMs: number) => void;
  /** What the client chose, by track; without a choice `autoSubscribe` decides. */
  readonly #choices = new Map<string, { wanted: boolean; layer: Layer | undefined }>();
  #active: Active | null = null;
  #working = false;
  #again = false;
  /** Without a connection nothing is changed. */
  #paused = true;
  /** The client still has a peer connection of before: it must throw that away before it gets another offer. */
  #blocked = false;
  #closed = false;
  #failures = 0;
  #offerId = 0;
  #answerTimer: NodeJS.Timeout | undefined;
  #againTimer: NodeJS.Timeout | undefined;

  constructor(host: MediaHost, place: () => MediaPlace | null, onLost: (target: PeerTarget, pauseMs: number) => void) {
    this.#host = host;
    this.#place = place;
    this.#onLost = onLost;
  }

  get isActive(): boolean {
    return this.#active !== null;
  }

  subscribe(tracks: ClientMessages['subscribe']['tracks']): void {
    const known = this.#published();
    const missing = tracks.filter((track) => !known.has(keyOf(track)));
    if (missing.length > 0) {
      throw new RequestFailure(
        'not_found',
        'There is no such track.',
        missing.slice(0, 20).map(({ participantId, trackId }) => ({
          path: 'tracks',
          message: `${participantId} publishes no ${trackId}`,
        })),
      );
    }
    for (const track of tracks) this.#choose(keyOf(track), { wanted: true, layer: track.layer });
    this.wake();
  }

  unsubscribe(tracks: ClientMessages['unsubscribe']['tracks']): void {
    for (const track of tracks) {
      const key = keyOf(track);
      // Without autoSubscribe there is nothing to remember: not choosing is not wanting.
      if (this.#host.autoSubscribe) this.#choose(key, { wanted: false, layer: undefined });
      else this.#choices.delete(key);
    }
    this.wake();
  }

  async answer(offerId: number, sdp: string): Promise<void> {
    const active = this.#active;
    if (active?.outstanding?.offerId !== offerId) {
      throw new RequestFailure('conflict', 'This offer is not the latest, or has been answered.');
    }
    const judged = judgeAnswer(sdp);
    if (!judged.ok) throw new RequestFailure(judged.refusal.code, judged.refusal.message, judged.refusal.details);
    try {
      await active.handle.answer(judged.sdp);
    } catch (error) {
      if (!(error instanceof MediaError)) throw error;
      if (error.code === 'invalid_sdp') {
        throw new RequestFailure('invalid_sdp', 'The media server refused the description.');
      }
      await this.#fail(active, error);
      throw mediaUnavailable(error);
    }
    if (this.#active !== active) return;
    clearTimeout(this.#answerTimer);
    active.outstanding = null;
    this.#failures = 0;
    this.wake();
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

  /** Something has changed: compares what is wanted with what is received. */
  wake(): void {
    if (this.#working) {
      this.#again = true;
      return;
    }
    void this.#work();
  }

  pause(): void {
    this.#paused = true;
    clearTimeout(this.#answerTimer);
    clearTimeout(this.#againTimer);
  }

  /** There is a connection: the offer that waits for an answer, if any, is sent again. */
  unpause(): void {
    this.#paused = false;
    this.#offerAgain();
    this.wake();
  }

  /** The client begins anew, and makes its choices again. */
  forget(): void {
    this.#choices.clear();
  }

  /** The client knows that its peer connection is gone. */
  unblock(): void {
    this.#blocked = false;
    this.wake();
  }

  async drop(): Promise<void> {
    const active = this.#active;
    this.#active = null;
    clearTimeout(this.#answerTimer);
    if (active === null) return;
    if (active.offered) this.#blocked = true;
    active.handle.removeAllListeners();
    await active.handle.detach();
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#againTimer);
    await this.drop();
  }

  /** After a resume: the offer, or its answer, may have been lost with the connection. */
  #offerAgain(): void {
    const outstanding = this.#active?.outstanding;
    if (this.#active === null || outstanding == null) return;
    this.#host.send(outstanding);
    this.#expectAnswer(this.#active);
  }

  #choose(key: string, choice: { wanted: boolean; layer: Layer | undefined }): void {
    if (!this.#choices.has(key) && this.#choices.size >= CHOICES_MAX) {
      const published = this.#published();
      for (const old of this.#choices.keys()) if (!published.has(old)) this.#choices.delete(old);
      if (this.#choices.size >= CHOICES_MAX) throw new RequestFailure('rate_limited', 'Too many tracks were chosen.');
    }
    this.#choices.set(key, choice);
  }

  /** Tracks of the others, by their key. */
  #published(): Map<string, StreamReference> {
    const published = new Map<string, StreamReference>();
    for (const { participant, tracks } of this.#host.snapshot()?.sessions ?? []) {
      if (participant.id === this.#host.participantId) continue;
      for (const { trackId, feedId, mid } of tracks) {
        published.set(keyOf({ participantId: participant.id, trackId }), { feedId, mid });
      }
    }
    return published;
  }

  #wanted(): Map<string, StreamReference> {
    const wanted = new Map<string, StreamReference>();
    for (const [key, stream] of this.#published()) {
      if (wanted.size >= PROTOCOL_LIMITS.subscriptionsMax) break;
      if (this.#choices.get(key)?.wanted ?? this.#host.autoSubscribe) wanted.set(key, stream);
    }
    return wanted;
  }

  /** One change after another until nothing is left to change. Never rejects. */
  async #work(): Promise<void> {
    this.#working = true;
    for (let again = true; again; again = this.#takeAgain()) {
      const active = this.#active;
      try {
        await this.#change();
      } catch (error) {
        await this.#fail(this.#active ?? active, error);
      }
    }
    this.#working = false;
  }

  /** Whether something has changed since the change that was just made began. */
  #takeAgain(): boolean {
    const again = this.#again;
    this.#again = false;
    return again;
  }

  async #change(): Promise<void> {
    if (this.#closed || this.#paused || this.#blocked) return;
    const place = this.#place();
    if (place === null) return;
    if (this.#active !== null && this.#active.node !== place.node) await this.drop();
    if (this.#active?.outstanding != null) return;
    const wanted = this.#wanted();
    const active = this.#active ?? (wanted.size === 0 ? null : await this.#attach(place.node));
    // It has ended while it was attached.
    if (active === null || this.#active !== active) return;

    const add: StreamReference[] = [];
    const remove: StreamReference[] = [];
    for (const [key, stream] of active.streams) if (!isSame(wanted.get(key), stream)) remove.push(stream);
    for (const [key, stream] of wanted) {
      if (isSame(active.streams.get(key), stream) || isSame(active.absent.get(key), stream)) continue;
      add.push(stream);
    }
    if (add.length > 0 || remove.length > 0) await this.#update(active, wanted, { add, remove });
    if (active.outstanding === null) await this.#selectLayers(active);
  }

  async #update(
    active: Active,
    wanted: Map<string, StreamReference>,
    change: { add: StreamReference[]; remove: StreamReference[] },
  ): Promise<void> {
    const offer = await active.handle.update(change);
    if (this.#active !== active || this.#closed) return;
    for (const stream of change.remove) {
      for (const [key, had] of active.streams) {
        if (!isSame(had, stream)) continue;
        active.streams.delete(key);
        active.subscriberMids.delete(key);
        active.layers.delete(key);
      }
    }
    if (offer !== null) this.#offer(active, wanted, offer);
    // What the media server did not take does not exist there (yet): asked for again a little later.
    let absent = false;
    for (const [key, stream] of wanted) {
      if (!change.add.includes(stream) || isSame(active.streams.get(key), stream)) continue;
      active.absent.set(key, stream);
      absent = true;
    }
    if (!absent) return;
    clearTimeout(this.#againTimer);
    this.#againTimer = setTimeout(() => {
      active.absent.clear();
      this.wake();
    }, ABSENT_AGAIN_MS);
  }

  #offer(active: Active, wanted: Map<string, StreamReference>, { sdp, streams }: SubscriberOffer): void {
    const keys = new Map([...active.streams, ...wanted].map(([key, stream]) => [nameOf(stream), key]));
    const tracks: ServerMessages['offer']['tracks'] = [];
    active.streams.clear();
    active.subscriberMids.clear();
    for (const { feedId, mid, subscriberMid } of streams) {
      const key = keys.get(nameOf({ feedId, mid }));
      if (key === undefined) continue;
      active.streams.set(key, { feedId, mid });
      active.subscriberMids.set(key, subscriberMid);
      tracks.push({ ...referenceOf(key), mid: subscriberMid });
    }
    this.#offerId += 1;
    active.outstanding = { type: 'offer', offerId: this.#offerId, sdp, tracks };
    active.offered = true;
    this.#host.send(active.outstanding);
    for (const candidate of active.held ?? []) this.#sendCandidate(candidate);
    active.held = null;
    this.#expectAnswer(active);
  }

  #expectAnswer(active: Active): void {
    clearTimeout(this.#answerTimer);
    this.#answerTimer = setTimeout(() => {
      void this.#fail(active, new Error(`no answer within ${ANSWER_WITHIN_MS} ms`));
    }, ANSWER_WITHIN_MS);
  }

  async #selectLayers(active: Active): Promise<void> {
    for (const [key, subscriberMid] of active.subscriberMids) {
      const layer = this.#choices.get(key)?.layer;
      if (layer === undefined || sameLayer(active.layers.get(key), layer)) continue;
      await active.handle.selectLayer(subscriberMid, layer);
      active.layers.set(key, layer);
    }
  }

  async #attach(node: MediaNode): Promise<Active | null> {
    const { roomId, sessionId, connectionNumber } = this.#host;
    await node.ensureRoom(roomId);
    const handle = await node.attachSubscriber(roomId, `${sessionId}-${connectionNumber}`);
    if (this.#closed || this.#place()?.node !== node) {
      await handle.detach();
      return null;
    }
    const active: Active = {
      handle,
      node,
      streams: new Map(),
      subscriberMids: new Map(),
      layers: new Map(),
      absent: new Map(),
      outstanding: null,
      offered: false,
      held: [],
    };
    this.#active = active;
    handle.on('candidate', (candidate) => {
      if (this.#active !== active) return;
      if (active.held === null) this.#sendCandidate(candidate);
      else active.held.push(candidate);
    });
    handle.on('closed', (reason) => {
      if (this.#active === active) void this.#fail(active, new Error(`closed by the media server: ${reason}`));
    });
    return active;
  }

  #sendCandidate(candidate: IceCandidate | null): void {
    this.#host.send({ type: 'candidate', target: 'subscriber', candidate: candidate as Candidate });
  }

  /** Begins anew, after a pause that grows with each failure. */
  async #fail(active: Active | null, error: unknown): Promise<void> {
    if (this.#closed) return;
    if (active !== null && this.#active !== active) return;
    const offered = active?.offered === true;
    await this.drop();
    this.#host.logger.info('subscriber closed', { sessionId: this.#host.sessionId, failures: this.#failures, error });
    // A media server that is away is no failure of this client: it is told as soon as there is one.
    const away = this.#place() === null;
    const pauseMs = away ? 0 : (FAILED_AGAIN_MS[Math.min(this.#failures, FAILED_AGAIN_MS.length - 1)] ?? 0);
    if (!away) this.#failures += 1;
    if (offered) {
      this.#onLost('subscriber', pauseMs);
      return;
    }
    clearTimeout(this.#againTimer);
    if (!this.#paused && !away) this.#againTimer = setTimeout(() => this.wake(), pauseMs);
  }
}

function keyOf({ participantId, trackId }: TrackReference): string {
  return `${participantId}/${trackId}`;
}

function referenceOf(key: string): TrackReference {
  const at = key.indexOf('/');
  return { participantId: key.slice(0, at), trackId: key.slice(at + 1) };
}

function nameOf({ feedId, mid }: StreamReference): string {
  return `${feedId}/${mid}`;
}

function isSame(a: StreamReference | undefined, b: StreamReference | undefined): boolean {
  return a !== undefined && b !== undefined && a.feedId === b.feedId && a.mid === b.mid;
}

function sameLayer(a: Layer | undefined, b: Layer): boolean {
  return a !== undefined && a.spatial === b.spatial && a.temporal === b.temporal;
}
