import {
  MediaError,
  type IceCandidate,
  type MediaNode,
  type MediaSubscriber,
  type StreamReference,
  type SubscriberOffer,
} from '@callplane/media';
import type { Candidate, ClientMessages, PeerTarget, ServerMessages } from '@callplane/protocol';
import { RequestFailure } from '../connections/request-failure.js';
import { toIceCandidate } from './candidates.js';
import { ReceivedStreams } from './received-streams.js';
import { judgeAnswer } from './sdp-gate.js';
import { mediaUnavailable, type MediaHost, type MediaPlace } from './session-media.js';
import { WantedTracks } from './wanted-tracks.js';

/** How long a client may take to answer an offer, in milliseconds. */
const ANSWER_WITHIN_MS = 15_000;
/** A stream that the media server did not know is asked for again after so long, in milliseconds. */
const ABSENT_AGAIN_MS = 1000;
/** After failures in a row, in milliseconds; the last one stays. */
const FAILED_AGAIN_MS = [250, 1000, 2000, 5000, 10_000, 30_000];

interface Active {
  handle: MediaSubscriber;
  node: MediaNode;
  received: ReceivedStreams;
  outstanding: ServerMessages['offer'] | null;
  offered: boolean;
  held: (IceCandidate | null)[] | null;
}

/** The receiving half of a session's media: what is wanted against what is received, one offer at a time. */
export class Subscribing {
  readonly #host: MediaHost;
  readonly #place: () => MediaPlace | null;
  readonly #onLost: (target: PeerTarget, pauseMs: number) => void;
  readonly #wanted: WantedTracks;
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
    this.#wanted = new WantedTracks(host);
    this.#place = place;
    this.#onLost = onLost;
  }

  get isActive(): boolean {
    return this.#active !== null;
  }

  subscribe(tracks: ClientMessages['subscribe']['tracks']): void {
    this.#wanted.subscribe(tracks);
    this.wake();
  }

  unsubscribe(tracks: ClientMessages['unsubscribe']['tracks']): void {
    this.#wanted.unsubscribe(tracks);
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
    this.#wanted.forget();
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
    const wanted = this.#wanted.streams();
    const active = this.#active ?? (wanted.size === 0 ? null : await this.#attach(place.node));
    // It has ended while it was attached.
    if (active === null || this.#active !== active) return;

    const { add, remove } = active.received.changesTo(wanted);
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
    active.received.remove(change.remove);
    if (offer !== null) this.#offer(active, wanted, offer);
    // What the media server did not take is asked for again a little later.
    if (!active.received.noteAbsent(change.add, wanted)) return;
    clearTimeout(this.#againTimer);
    this.#againTimer = setTimeout(() => {
      active.received.forgetAbsent();
      this.wake();
    }, ABSENT_AGAIN_MS);
  }

  #offer(active: Active, wanted: Map<string, StreamReference>, { sdp, streams }: SubscriberOffer): void {
    const tracks = active.received.replace(streams, wanted);
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
    const chosen = active.received.layersToSelect((key) => this.#wanted.layerOf(key));
    for (const { key, subscriberMid, layer } of chosen) {
      await active.handle.selectLayer(subscriberMid, layer);
      active.received.layerSelected(key, layer);
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
      received: new ReceivedStreams(),
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
