import { MediaError, type MediaNode, type MediaSession } from '@callplane/media';
import { RequestFailure } from '../clients/client.js';
import { LocalSelection } from './local-selection.js';
import type { MediaDeps, MediaOwner, SubscriberRecord } from './media-writes.js';
import { mediaUnavailable, type MediaPlace } from './places.js';
import { nextOfferId, ReceivingPeer, type ReceivingPeerListener } from './receiving-peer.js';
import { TrackSelector, type Selection } from './selection.js';
import { SubscriberReports } from './subscriber-reports.js';

/** Pauses after consecutive failures, in milliseconds. The last one repeats. */
const FAILED_AGAIN_MS = [250, 1000, 2000, 5000, 10_000, 30_000];

/** The selection is not what the sections carry. */
interface Difference {
  place: MediaPlace;
  selection: Selection;
}

/**
 * The receiving half of a session's media: the client's selection, and the peer connection that carries it. A loop
 * compares the two, and makes one change at a time until they agree. Every possible change calls `wake`.
 */
export class Subscriber implements ReceivingPeerListener {
  readonly selector: TrackSelector;
  readonly #reports: SubscriberReports;
  /** The peer connection over which the client receives, if it has an offer. */
  peer: ReceivingPeer | null = null;
  /** Whether the client has a connection, and its welcome. */
  #isConnected = false;
  /** False while the client does not know yet that its peer connection is lost. */
  #clientKnows = true;
  #isClosed = false;
  #isRunning = false;
  /** The tracks of the sections after the running alignment; null if the sections must be compared first. */
  #aligned: Selection | null = null;
  #mustRefresh = false;
  readonly #local: LocalSelection;
  /** Of the latest offer. */
  #offerId = 0;
  #failures = 0;
  #pauseTimer: NodeJS.Timeout | undefined;

  /** @param onLost called when the peer connection of the client is lost; `unblock` says that the client knows it */
  constructor(
    private readonly deps: MediaDeps,
    private readonly session: MediaOwner,
    private readonly place: () => MediaPlace | null,
    private readonly onLost: () => void,
  ) {
    this.selector = new TrackSelector(session);
    const node = () => this.peer?.node ?? this.place()?.node;
    this.#local = new LocalSelection(deps.forwards, session, node, () => this.#compare());
    this.#reports = new SubscriberReports(session, this.#local);
  }

  /** The record with which another gateway continues the peer; null while it negotiates, and without a peer. */
  get record(): SubscriberRecord | null {
    const peer = this.peer;
    if (peer?.handle == null || !peer.hasOffer || peer.outstanding !== null) return null;
    return { handle: peer.handle.handleId, offerId: this.#offerId };
  }

  /**
   * Continues the peer of another gateway.
   * @returns false if the media server does not list its sections
   */
  async claim(node: MediaNode, session: MediaSession, record: SubscriberRecord): Promise<boolean> {
    if (this.peer !== null || this.#isClosed) return false;
    this.#offerId = record.offerId;
    const peer = new ReceivingPeer(this.session, node, this);
    peer.adopt(session, record.handle);
    this.peer = peer;
    try {
      await this.#local.load();
      await peer.list(this.#local.view);
    } catch (error) {
      this.deps.logger.info('receiving connection not taken over', { sessionId: this.session.sessionId, error });
      if (peer === this.peer) void this.#release();
    }
    // The client knows the last report of the other gateway.
    if (peer === this.peer) this.#reports.repeat();
    return peer === this.peer;
  }

  /** @throws RequestFailure `not_found` if a track is not published */
  subscribe(tracks: Parameters<TrackSelector['subscribe']>[0]): void {
    this.selector.subscribe(tracks);
    this.#chosen();
  }

  unsubscribe(tracks: Parameters<TrackSelector['unsubscribe']>[0]): void {
    this.selector.unsubscribe(tracks);
    this.#chosen();
  }

  #chosen(): void {
    this.deps.writes.changed(this.session);
    this.wake();
    // Failures are normally reported after the alignment. Without a peer they are reported now.
    if (this.peer === null) this.#reports.report(null, this.#select());
  }

  /** @throws RequestFailure if the answer is refused, or answers no outstanding offer */
  async answer(offerId: number, sdp: string): Promise<void> {
    const peer = this.peer;
    if (peer?.outstanding?.offerId !== offerId || peer.isAnswering) {
      throw new RequestFailure('conflict', 'The offer was replaced by a later one or is already answered.');
    }
    try {
      const refused = await peer.answer(sdp);
      if (refused.length > 0) this.deps.logger.info('tracks refused', { sessionId: this.session.sessionId, refused });
    } catch (error) {
      if (!(error instanceof MediaError)) throw error;
      if (peer === this.peer) this.#fail(peer, error);
      throw mediaUnavailable(error);
    }
  }

  /**
   * Makes an offer with new ICE credentials, as soon as no other offer is outstanding.
   * @throws RequestFailure `conflict` if the client has no receiving connection
   */
  restart(): void {
    if (this.peer?.hasOffer !== true) throw new RequestFailure('conflict', 'There is no receiving connection.');
    this.peer.mustRestart = true;
    this.#compare();
  }

  /** Asks for key frames of all received video, as soon as no change of it is in progress. */
  refresh(): void {
    this.#mustRefresh = true;
    this.#compare();
  }

  /** Call this after any change of the room's tracks or of the media server. */
  wake(): void {
    if (this.#isRunning) return;
    const difference = this.#difference();
    if (difference !== null) void this.#run(difference);
  }

  /** Call this when the session has lost its connection: nothing changes until it has one again. */
  pause(): void {
    this.#isConnected = false;
    this.peer?.stopTimers();
  }

  /** Call this when the session has a connection: repeats messages that the client may have missed. */
  unpause(): void {
    this.#isConnected = true;
    const peer = this.peer;
    if (peer !== null) {
      peer.sections.retryAbsent();
      this.#reports.repeat();
      this.#sendOffer(peer);
    }
    this.#compare();
  }

  /** Call this once the client knows that its previous peer connection is lost. */
  unblock(): void {
    this.#clientKnows = true;
    this.wake();
  }

  /** Forgets the client's choices: the client starts over and chooses again. */
  forget(): void {
    this.selector.forget();
    this.#reports.forget();
  }

  /** Gives up the peer. Resolves once the media server has released it. */
  drop(): Promise<void> {
    if (this.peer?.hasOffer === true) this.#clientKnows = false;
    clearTimeout(this.#pauseTimer);
    this.#pauseTimer = undefined;
    return this.#release();
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.#local.release();
    return this.drop();
  }

  onEnded(peer: ReceivingPeer, error: Error): void {
    if (peer === this.peer) this.#fail(peer, error);
  }

  onDisturbed(): void {
    this.#compare();
  }

  /** @returns null if nothing has to be done, or nothing can be done now */
  #difference(): Difference | null {
    if (!this.#isConnected || this.#isClosed || this.#pauseTimer !== undefined) return null;
    const place = this.place();
    if (place === null) return null;
    if (this.peer !== null && this.peer.node !== place.node) void this.drop();
    if (!this.#clientKnows) return null;
    const [peer, selection] = [this.peer, this.#select()];
    if (peer === null) return selection.tracks.size === 0 ? null : { place, selection };
    return selection === this.#aligned ? null : { place, selection };
  }

  async #run(first: Difference): Promise<void> {
    this.#isRunning = true;
    for (let difference: Difference | null = first; difference !== null; difference = this.#difference()) {
      const peer = (this.peer ??= new ReceivingPeer(this.session, difference.place.node, this));
      try {
        await this.#align(peer, difference);
      } catch (error) {
        if (peer === this.peer) this.#fail(peer, error);
      }
    }
    this.#isRunning = false;
  }

  async #align(peer: ReceivingPeer, { place, selection }: Difference): Promise<void> {
    this.#aligned = selection;
    const result = await peer.align(place, selection.tracks, this.#local.view);
    if (peer !== this.peer) return;
    this.#local.reportLost(selection, (stream) => peer.sections.triesOf(stream) > 0);
    if (result.outcome === 'exhausted') {
      this.deps.logger.info('subscriber has too many media sections', { sessionId: this.session.sessionId });
      this.#giveUp(peer, 0);
      return;
    }
    // `unpause` requests absent streams again, too.
    if (this.#isConnected) peer.expectAbsent(selection.tracks, () => this.#compare());
    if (result.outcome !== 'aligned') {
      this.#aligned = null;
      if (result.outcome === 'offer') await this.#negotiate(peer, result.sdp);
      return;
    }
    this.#reports.report(peer, this.#select());
    if (this.#mustRefresh) peer.refresh().catch(() => undefined);
    this.#mustRefresh = false;
  }

  /** Compares the selection with the sections, although the selection is the same. */
  #compare(): void {
    this.#aligned = null;
    this.wake();
  }

  /** An alignment that makes an offer sets neither layers nor pauses. The next one, after the answer, does. */
  async #negotiate(peer: ReceivingPeer, sdp: string): Promise<void> {
    this.#offerId = nextOfferId(this.#offerId, this.session);
    const answered = peer.offer(this.#offerId, sdp);
    this.deps.writes.changed(this.session);
    this.#sendOffer(peer);
    await answered;
    if (peer !== this.peer) return;
    this.#failures = 0;
    this.deps.writes.changed(this.session);
    this.#reports.report(peer, this.#select());
  }

  #sendOffer(peer: ReceivingPeer): void {
    if (peer.outstanding === null) return;
    this.session.send(peer.outstanding);
    // Without a connection, the client does not get the offer before `unpause`.
    if (this.#isConnected) peer.expectAnswer((error) => this.#fail(peer, error));
  }

  #select(): Selection {
    return this.#local.select(this.selector, this.peer);
  }

  /** The handle is lost, or was not attached. */
  #fail(peer: ReceivingPeer, error: unknown): void {
    const failures = this.#failures;
    this.deps.logger.info('subscriber closed', { sessionId: this.session.sessionId, failures, error });
    // An unreachable media server is no failure of this client.
    const isPlaced = this.place() !== null;
    if (isPlaced) this.#failures += 1;
    this.#giveUp(peer, isPlaced ? (FAILED_AGAIN_MS[Math.min(failures, FAILED_AGAIN_MS.length - 1)] ?? 0) : 0);
  }

  #giveUp({ hasOffer }: ReceivingPeer, pauseMs: number): void {
    void this.#release();
    this.#pauseTimer = setTimeout(() => {
      this.#pauseTimer = undefined;
      this.wake();
    }, pauseMs);
    if (!hasOffer) return;
    this.#clientKnows = false;
    this.onLost();
  }

  #release(): Promise<void> {
    const peer = this.peer;
    this.peer = null;
    this.#aligned = null;
    this.#reports.lost();
    if (peer?.hasOffer === true) this.deps.writes.changed(this.session);
    return peer?.close() ?? Promise.resolve();
  }
}
