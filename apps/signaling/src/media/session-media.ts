import type { ClientMessages, PeerTarget } from '@callplane/protocol';
import { Handover, type ResumedMedia } from './handover/handover.js';
import type { MediaState } from './handover/media-state.js';
import { LostPeers } from './lost-peers.js';
import { placeOf, type MediaHost, type MediaPlace } from './media-host.js';
import { OwnSession } from './own-session.js';
import { Paths } from './peers/paths.js';
import { Publisher } from './peers/publisher.js';
import { Subscriber } from './peers/subscriber.js';
import type { MediaPlaces } from './placement/media-places.js';
import { Republication } from './republication.js';
import { Serial } from './serial.js';

/**
 * A session's two peer connections on the media server. They follow the room: when its media server goes down, comes
 * back or is replaced, the client learns which of them are lost.
 */
export class SessionMedia {
  readonly #places: MediaPlaces;
  readonly #host: MediaHost;
  readonly #own = new OwnSession();
  readonly #writes = new Serial();
  readonly #publisher: Publisher;
  readonly #subscriber: Subscriber;
  readonly paths: Paths;
  readonly #lost = new LostPeers((targets) => this.#sendReset(targets));
  readonly #handover: Handover;
  readonly #republication: Republication;
  #state: 'up' | 'down' = 'down';
  #placedOn: string | null = null; // `<node>/<generation>`
  #closed = false;

  constructor(places: MediaPlaces, host: MediaHost) {
    this.#places = places;
    this.#host = host;
    const place = () => this.#place();
    const onLost = (target: PeerTarget, pauseMs = 0) => this.#lose(target, pauseMs);
    const publisher = new Publisher(host, {
      place,
      onLost,
      writes: this.#writes,
      stateWith: (state) => this.#handover.stateWith(state),
      onAnswered: () => {
        this.#lost.delete('publisher');
        this.#republication.cancel();
      },
    });
    const subscriber = new Subscriber(host, place, onLost);
    [this.#publisher, this.#subscriber] = [publisher, subscriber];
    this.paths = new Paths(publisher, subscriber);
    const parts = { host, own: this.#own, publisher, subscriber, lost: this.#lost, endings: places.endings };
    this.#handover = new Handover(parts);
    this.#republication = new Republication(host, this.#writes, () => !this.#closed && !publisher.isAnnounced);
  }

  /** The media state last sent to the client. */
  get state(): 'up' | 'down' {
    return this.#state;
  }

  /** Call this before the welcome, which carries the room's media state. */
  readPlacement(): void {
    this.#placedOn = placeOf(this.#host);
    this.#state = this.#place() === null ? 'down' : 'up';
  }

  /** Call this after the welcome: it starts receiving. */
  onWelcomed(): void {
    this.onPlacement();
    this.#publisher.repeatCandidates();
    this.#subscriber.unpause();
  }

  /** Whether a change of the room's tracks can matter to the client. */
  get wantsTracks(): boolean {
    return this.#subscriber.hasWants;
  }

  /** Call this when the room's tracks have changed. */
  onTracks(): void {
    if (!this.#closed) this.#subscriber.wake();
  }

  /** Call this when the room shows another state of the session: its tracks, their mutes or its permissions. */
  onOwn(): void {
    if (!this.#closed) this.#publisher.onOwn();
  }

  /** Call this when the room's media server went up or down, or is another one. */
  onPlacement(): void {
    if (this.#closed) return;
    const placedOn = placeOf(this.#host);
    const moved = this.#placedOn !== null && this.#placedOn !== placedOn;
    this.#placedOn = placedOn;
    const place = this.#place();
    if (place === null || moved) this.#dropBoth();
    const state = place === null ? 'down' : 'up';
    if (state !== this.#state) {
      this.#state = state;
      if (this.#host.isConnected) this.#host.send({ type: 'mediaState', state });
    }
    if (place === null) return;
    void this.#handover.endLost(place);
    if (!this.#lost.isDelayed || moved) this.#lost.report();
    this.#subscriber.wake();
  }

  /** Call this when the connection is lost. A resumption can continue with the peer connections. */
  onConnectionLost(): void {
    this.#republication.cancel();
    this.#lost.cancel();
    this.#publisher.clientLost();
    this.#subscriber.pause();
  }

  /** Call this for a session of another gateway, until `takeOver` is called: the client's peer connections are lost. */
  expectTakeOver(): void {
    this.#handover.expect();
  }

  /** Goes on with the media that another gateway has handed over. Call it when the room is known. Never rejects. */
  takeOver(resumed: ResumedMedia): Promise<void> {
    this.readPlacement();
    return this.#handover.takeOver(this.#place(), resumed);
  }

  /** Resolves when no `takeOver` is in progress. */
  takenOver(): Promise<void> {
    return this.#handover.settled();
  }

  /**
   * Call this when the session is resumed, right before the welcome.
   * @returns whether a peer connection of the client still works. If not, the client creates new ones and publishes
   *   again; if one of them does not, a `mediaReset` follows the welcome.
   */
  resumed(clientHasPeers: boolean): boolean {
    // The room may have moved since the peer connections were taken over.
    this.onPlacement();
    this.#handover.finish();
    this.#host.mediaChanged();
    const continued = clientHasPeers && this.#lost.size < 2 && this.#state === 'up';
    if (!continued) {
      this.#dropBoth();
      this.#lost.clear();
      this.#subscriber.forget();
      this.#subscriber.unblock();
      this.#republication.expect();
    }
    return continued;
  }

  /** Where the session's media is, for a gateway that takes it over; null without media. */
  get mediaState(): MediaState | null {
    return this.#closed ? null : this.#handover.stateWith(this.#publisher.handOver());
  }

  publish(request: ClientMessages['publish']): Promise<void> {
    return this.#publisher.publish(request);
  }

  async unpublish(): Promise<void> {
    this.#republication.cancel();
    await this.#publisher.drop();
    await this.#writes.run(() => this.#host.unpublishAll());
  }

  mute(trackId: string, muted: boolean): Promise<void> {
    return this.#publisher.mute(trackId, muted);
  }

  subscribe(tracks: ClientMessages['subscribe']['tracks']): void {
    this.#subscriber.subscribe(tracks);
  }

  unsubscribe(tracks: ClientMessages['unsubscribe']['tracks']): void {
    this.#subscriber.unsubscribe(tracks);
  }

  answer(offerId: number, sdp: string): Promise<void> {
    return this.#subscriber.answer(offerId, sdp);
  }

  /** Returns false if the peer connection does not exist (any more): a late candidate is no client error. */
  async candidate({ target, candidate }: ClientMessages['candidate']): Promise<boolean> {
    return target === 'publisher' ? this.#publisher.addCandidate(candidate) : this.#subscriber.addCandidate(candidate);
  }

  /** Call this when the client has closed these peer connections because they failed on its side. */
  async reset(targets: readonly PeerTarget[]): Promise<void> {
    if (targets.includes('publisher')) {
      await this.#publisher.drop();
      this.#lost.delete('publisher');
      this.#republication.expect();
    }
    if (targets.includes('subscriber')) {
      await this.#subscriber.drop();
      this.#lost.delete('subscriber');
      this.#subscriber.unblock();
    }
  }

  /** Closes both peer connections. Resolves once the media server has released them or cannot be reached. */
  async destroy(): Promise<void> {
    this.#close();
    await Promise.all([this.#own.destroy(), this.#publisher.close(), this.#subscriber.close()]);
  }

  /** Forgets both peer connections: another gateway may go on with them. */
  abandon(): void {
    this.#close();
    this.#own.abandon();
    void Promise.all([this.#publisher.close(), this.#subscriber.close()]);
  }

  #close(): void {
    this.#closed = true;
    this.#republication.cancel();
    this.#lost.cancel();
  }

  #place(): MediaPlace | null {
    const placement = this.#host.placement();
    const node = this.#places.up(placement?.mediaNodeId ?? null);
    if (placement === null || node === null) return null;
    return { node, generation: placement.mediaGeneration, session: () => this.#own.open(node) };
  }

  #dropBoth(): void {
    if (this.#publisher.handle !== undefined) this.#lost.add('publisher');
    if (this.#subscriber.isActive) this.#lost.add('subscriber');
    void this.#publisher.drop();
    void this.#subscriber.drop();
  }

  #lose(target: PeerTarget, pauseMs: number): void {
    if (this.#closed) return;
    this.#lost.add(target);
    if (this.#place() !== null) this.#lost.report(pauseMs);
  }

  #sendReset(targets: PeerTarget[]): boolean {
    if (this.#closed || !this.#host.isConnected || this.#place() === null) return false;
    this.#host.send({ type: 'mediaReset', targets });
    if (targets.includes('publisher')) this.#republication.expect();
    if (targets.includes('subscriber')) this.#subscriber.unblock();
    return true;
  }
}
