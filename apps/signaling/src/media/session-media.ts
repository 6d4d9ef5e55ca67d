import type { ClientMessages, PeerTarget } from '@callplane/protocol';
import { MediaError } from '@callplane/media';
import { storedTracks, type MediaDeps, type MediaOwner, type MediaRecord } from './media-writes.js';
import { isElsewhere, type MediaPlace, type Where } from './places.js';
import { OwnSession, recordOf, takeOver, type HandoverParts, type ResumedMedia } from './handover.js';
import { Publisher } from './publisher.js';
import { checkCandidate } from './sdp-gate.js';
import { Subscriber } from './subscriber.js';

/** Time for a client to republish tracks that the media server lost, in milliseconds. Then they are unpublished. */
const REPUBLISH_WITHIN_MS = 10_000;

/**
 * A session's two peer connections on the media server. They follow the room: when its media server goes down, comes
 * back or is replaced, the client learns which of them are lost.
 */
export class SessionMedia {
  readonly publisher: Publisher;
  readonly subscriber: Subscriber;
  /** The media state last sent to the client. */
  state: 'up' | 'down' = 'down';
  readonly #own = new OwnSession();
  /** The peer connections that the media server has lost while the client does not know it yet. */
  readonly #lost = new Set<PeerTarget>();
  readonly #parts: HandoverParts;
  #republication: NodeJS.Timeout | undefined;
  #placedOn: Where | null = null;
  /** One of the room's further media servers; null: its own. */
  #furtherNodeId: string | null = null;
  /** The region that the client's token names. */
  #region: string | null = null;
  #closed = false;
  /** Whether the session came from another gateway, and its client has not been welcomed yet. */
  #isHandedOver = false;
  #takenOver: Promise<void> = Promise.resolve();

  constructor(
    private readonly deps: MediaDeps,
    private readonly session: MediaOwner,
  ) {
    const place = () => this.#place();
    this.publisher = new Publisher(deps, session, place, () => this.#lose('publisher'));
    this.subscriber = new Subscriber(deps, session, place, () => this.#lose('subscriber'));
    const [own, publisher, subscriber, lost] = [this.#own, this.publisher, this.subscriber, this.#lost];
    this.#parts = { deps, session, own, publisher, subscriber, lost, where: () => this.#where() };
  }

  /** Where the session's media is, for a gateway that takes it over; null without media. */
  get record(): MediaRecord | null {
    const record = this.#closed ? null : recordOf(this.#parts);
    return record === null || this.#region === null ? record : { ...record, region: this.#region };
  }

  /** Whether a change of the room's tracks can matter to the client. */
  get followsTracks(): boolean {
    return this.subscriber.selector.hasSelection;
  }

  /** @param nodeId one of the room's media servers, before the session has any media; null: the room's own */
  placeOn(nodeId: string | null, region: string | null): void {
    this.#furtherNodeId = nodeId;
    this.#region = region;
  }

  /** Call this before the welcome, which carries the room's media state. */
  readPlacement(): void {
    this.#placedOn = this.#where();
    this.state = this.#place() === null ? 'down' : 'up';
  }

  /** Call this after the welcome: it starts receiving. */
  onWelcomed(): void {
    this.onPlacement();
    this.subscriber.unpause();
  }

  onTracks(): void {
    if (!this.#closed) this.subscriber.wake();
  }

  /** Call this when the room shows another state of the session: its tracks, their mutes or its permissions. */
  onOwn(): void {
    if (!this.#closed) this.publisher.onOwn();
  }

  /** Call this when the room's media server went up or down, or is another one. */
  onPlacement(): void {
    if (this.#closed) return;
    this.#leaveRemovedNode();
    const placedOn = this.#where();
    const moved = this.#placedOn !== null && isElsewhere(this.#placedOn, placedOn);
    if (this.#placedOn?.generation !== placedOn.generation) this.deps.writes.changed(this.session);
    this.#placedOn = placedOn;
    const isUp = this.#place() !== null;
    if (!isUp || moved) this.#dropBoth();
    const state = isUp ? 'up' : 'down';
    if (state !== this.state) {
      this.state = state;
      if (this.session.isConnected) this.session.send({ type: 'mediaState', state });
    }
    this.#reportLost();
    this.subscriber.wake();
  }

  /** Call this when the connection is lost. A resumption can continue with the peer connections. */
  onConnectionLost(): void {
    clearTimeout(this.#republication);
    this.publisher.clientLost();
    this.subscriber.pause();
  }

  /** Call this for a session of another gateway, until `takeOver` is called: the client's peer connections are lost. */
  expectTakeOver(): void {
    this.#isHandedOver = true;
    this.#lost.add('publisher');
    this.#lost.add('subscriber');
  }

  /** Continues the media that another gateway has handed over. Call it when the room is known. Never rejects. */
  takeOver(resumed: ResumedMedia): Promise<void> {
    const record = resumed.media as MediaRecord | null;
    this.placeOn(record?.nodeId ?? null, record?.region ?? null);
    this.readPlacement();
    this.#takenOver = takeOver(this.#parts, this.#place(), resumed, () => this.#isHandedOver).then(
      (outcome) => {
        if (outcome !== null) this.deps.metrics.mediaClaim(outcome);
      },
      (error: unknown) => {
        this.deps.logger.error('media not taken over', { sessionId: this.session.sessionId, error });
      },
    );
    return this.#takenOver;
  }

  /** Resolves when no `takeOver` is in progress. */
  takenOver(): Promise<void> {
    return this.#takenOver;
  }

  /**
   * Call this when the session is resumed, right before the welcome.
   * @returns whether a peer connection of the client still works. If not, the client creates new ones and publishes
   *   again; if one of them does not, a `mediaReset` follows the welcome.
   */
  resumed(clientHasPeers: boolean): boolean {
    // The room may have moved since the peer connections were taken over.
    this.onPlacement();
    this.#isHandedOver = false;
    this.deps.writes.changed(this.session);
    const continued = clientHasPeers && this.#lost.size < 2 && this.state === 'up';
    if (!continued) {
      this.#dropBoth();
      this.#lost.clear();
      this.subscriber.forget();
      this.subscriber.unblock();
      this.#expectRepublication();
    }
    return continued;
  }

  /** @returns the answer. @throws RequestFailure */
  async publish(request: ClientMessages['publish']): Promise<string> {
    const answer = await this.publisher.publish(request);
    this.#lost.delete('publisher');
    clearTimeout(this.#republication);
    return answer;
  }

  async unpublish(): Promise<void> {
    clearTimeout(this.#republication);
    await this.publisher.drop();
    await this.publisher.unpublish();
  }

  /**
   * Gives a candidate of the client to the media server, with only the fields that it needs. Null marks their end.
   * @returns false if the peer connection does not exist (any more): a late candidate is no client error
   * @throws RequestFailure `invalid_sdp`
   */
  async candidate({ target, candidate }: ClientMessages['candidate']): Promise<boolean> {
    const handle = target === 'publisher' ? this.publisher.handle : this.subscriber.peer?.handle;
    const { sdpMid, sdpMLineIndex } = candidate ?? {};
    const checked =
      candidate === null ? null : { candidate: checkCandidate(candidate.candidate), sdpMid, sdpMLineIndex };
    try {
      await handle?.addCandidate(checked);
      return handle != null;
    } catch (error) {
      if (error instanceof MediaError) return false;
      throw error;
    }
  }

  /** Asks for key frames of the video that the client sends or receives: its path was interrupted, and works again. */
  refreshVideo(targets: readonly PeerTarget[]): void {
    // Browsers ask for them as well, up to 3 s later.
    if (targets.includes('publisher')) this.publisher.handle?.requestKeyFrames().catch(() => undefined);
    if (targets.includes('subscriber')) this.subscriber.refresh();
  }

  /** Call this when the client has closed these peer connections because they failed on its side. */
  async reset(targets: readonly PeerTarget[]): Promise<void> {
    if (targets.includes('publisher')) {
      await this.publisher.drop();
      this.#lost.delete('publisher');
      this.#expectRepublication();
    }
    if (targets.includes('subscriber')) {
      await this.subscriber.drop();
      this.#lost.delete('subscriber');
      this.subscriber.unblock();
    }
  }

  /** Closes both peer connections. Resolves once the media server has released them or cannot be reached. */
  async destroy(): Promise<void> {
    this.#close();
    await Promise.all([this.#own.destroy(), this.publisher.close(), this.subscriber.close()]);
  }

  /** Forgets both peer connections: another gateway may continue with them. */
  abandon(): void {
    this.#close();
    this.#own.abandon();
    void Promise.all([this.publisher.close(), this.subscriber.close()]);
  }

  #close(): void {
    this.#closed = true;
    clearTimeout(this.#republication);
  }

  #place(): MediaPlace | null {
    const { nodeId, generation } = this.#where();
    const node = this.deps.places.up(nodeId);
    return node === null ? null : { node, generation, session: () => this.#own.open(node) };
  }

  #where(): Where {
    const { state } = this.session.room;
    const further = this.#furtherNodeId;
    if (further !== null && state?.furtherNodeIds.includes(further) === true) return { nodeId: further, generation: 0 };
    return { nodeId: state?.mediaNodeId ?? null, generation: state?.mediaGeneration ?? 0 };
  }

  /** The room does not use the session's media server any more. */
  #leaveRemovedNode(): void {
    const { state } = this.session.room;
    if (this.#furtherNodeId === null || state === null || state.furtherNodeIds.includes(this.#furtherNodeId)) return;
    const isOwn = state.mediaNodeId === null || state.mediaNodeId === this.#furtherNodeId;
    const nodeId = isOwn
      ? null
      : this.deps.places.moveTo([state.mediaNodeId ?? '', ...state.furtherNodeIds], this.#region);
    this.#furtherNodeId = nodeId === state.mediaNodeId ? null : nodeId;
  }

  #dropBoth(): void {
    if (this.publisher.handle !== null) this.#lost.add('publisher');
    if (this.subscriber.peer?.hasOffer === true) this.#lost.add('subscriber');
    void this.publisher.drop();
    void this.subscriber.drop();
  }

  #lose(target: PeerTarget): void {
    this.#lost.add(target);
    this.#reportLost();
  }

  /** Tells the client which peer connections are lost. Waits until it is connected, and a media server is up. */
  #reportLost(): void {
    if (this.#closed || this.#lost.size === 0 || !this.session.isConnected || this.#place() === null) return;
    const targets = [...this.#lost];
    this.#lost.clear();
    this.session.send({ type: 'mediaReset', targets });
    if (targets.includes('publisher')) this.#expectRepublication();
    if (targets.includes('subscriber')) this.subscriber.unblock();
  }

  /** Unpublishes tracks that the client does not republish in time, so that others do not wait for them in vain. */
  #expectRepublication(): void {
    clearTimeout(this.#republication);
    this.#republication = setTimeout(() => void this.#unpublishOverdue(), REPUBLISH_WITHIN_MS);
  }

  async #unpublishOverdue(): Promise<void> {
    // A client without tracks has nothing to republish. Most viewers of a lost gateway have none.
    const isOverdue = () =>
      !this.#closed && this.session.isConnected && !this.publisher.isAnnounced && storedTracks(this.session).length > 0;
    try {
      await this.publisher.unpublish(isOverdue);
    } catch (error) {
      this.deps.logger.warn('tracks not unpublished', { sessionId: this.session.sessionId, error });
      if (isOverdue()) this.#expectRepublication();
    }
  }
}
