import type { Permission } from '@callplane/core';
import type { RoomPlacement, RoomSnapshot, TrackState } from '@callplane/db';
import type { MediaNode } from '@callplane/media';
import type { ClientMessages, PeerTarget, ServerMessage } from '@callplane/protocol';
import type { Logger } from '@callplane/runtime';
import { RequestFailure } from '../connections/request-failure.js';
import type { MediaPlaces } from './media-places.js';
import { Publishing } from './publishing.js';
import { Subscribing } from './subscribing.js';

/** What a session's media needs of the session. */
export interface MediaHost {
  readonly sessionId: string;
  readonly participantId: string;
  readonly roomId: string;
  readonly permissions: readonly Permission[];
  /** Counts the session's connections; part of the names of its feeds. */
  readonly connectionNumber: number;
  /** Whether there is a client that can be told. */
  readonly isConnected: boolean;
  readonly autoSubscribe: boolean;
  readonly logger: Logger;
  send(message: ServerMessage): void;
  /** The room as it was last read; null before that. */
  snapshot(): RoomSnapshot | null;
  /** Writes what is published from now on; false when the session is no longer ours. */
  publishTracks(tracks: TrackState[]): Promise<boolean>;
  unpublishAll(): Promise<void>;
  setTrackMuted(trackId: string, muted: boolean): Promise<boolean>;
  /** Reads the room anew; whether the session is still ours afterwards. */
  stillLive(): Promise<boolean>;
}

/** Where the room's media is at this moment. */
export interface MediaPlace {
  node: MediaNode;
  generation: number;
}

/** How long a client may take to publish again what the media server lost, before its tracks are unpublished. */
const REPUBLISH_WITHIN_MS = 10_000;

/**
 * A session's two peer connections on the media server. They follow the room: when its media server goes away, comes
 * back or is replaced, the client is told which of them are lost.
 */
export class SessionMedia {
  readonly #places: MediaPlaces;
  readonly #host: MediaHost;
  readonly #publishing: Publishing;
  readonly #subscribing: Subscribing;
  /** Peer connections that the client has and nobody else has any more. */
  readonly #lost = new Set<PeerTarget>();
  #state: 'up' | 'down' = 'down';
  #placedOn: { nodeId: string | null; generation: number } | null = null;
  #republishTimer: NodeJS.Timeout | undefined;
  /** Runs while a loss waits to be told. */
  #tellTimer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(places: MediaPlaces, host: MediaHost) {
    this.#places = places;
    this.#host = host;
    this.#publishing = new Publishing(
      host,
      () => this.#place(),
      (target) => this.#lose(target, 0),
    );
    this.#subscribing = new Subscribing(
      host,
      () => this.#place(),
      (target, pauseMs) => this.#lose(target, pauseMs),
    );
  }

  /** As the client was last told. */
  get state(): 'up' | 'down' {
    return this.#state;
  }

  /** Before the welcome: takes the room's present state for what the client will be told. */
  begin(): void {
    const placement = this.#host.snapshot();
    this.#placedOn = placedOn(placement);
    this.#state = this.#place() === null ? 'down' : 'up';
  }

  /** After the welcome: receiving begins. */
  start(): void {
    this.follow();
    this.#subscribing.unpause();
  }

  /** The room or its media server has changed. */
  follow(): void {
    if (this.#closed) return;
    const placement = placedOn(this.#host.snapshot());
    const place = this.#place();
    const moved =
      this.#placedOn !== null &&
      (placement.nodeId !== this.#placedOn.nodeId || placement.generation !== this.#placedOn.generation);
    this.#placedOn = placement;
    if (place === null || moved) this.#dropBoth();
    const state = place === null ? 'down' : 'up';
    if (state !== this.#state) {
      this.#state = state;
      if (this.#host.isConnected) this.#host.send({ type: 'mediaState', state });
    }
    if (place === null) return;
    if (this.#tellTimer === undefined || moved) this.#tellLost();
    this.#subscribing.wake();
  }

  /** The connection is gone for now: what it had is kept for a while. */
  paused(): void {
    clearTimeout(this.#republishTimer);
    this.#stopTelling();
    this.#subscribing.pause();
  }

  /**
   * The session has a connection again.
   * @returns whether the client's peer connections are still good. If not, it makes new ones and publishes again.
   */
  resumed(clientHasPeers: boolean): boolean {
    this.#state = this.#place() === null ? 'down' : 'up';
    this.#placedOn = placedOn(this.#host.snapshot());
    const continued = clientHasPeers && this.#lost.size === 0 && this.#state === 'up';
    if (!continued) {
      void this.#publishing.drop();
      void this.#subscribing.drop();
      this.#lost.clear();
      this.#subscribing.forget();
      this.#subscribing.unblock();
      this.#expectRepublish();
    }
    return continued;
  }

  /** A session that is new to this instance has tracks of its time elsewhere. */
  expectRepublish(): void {
    this.#expectRepublish();
  }

  async publish(request: ClientMessages['publish']): Promise<void> {
    await this.#publishing.publish(request);
    this.#lost.delete('publisher');
    clearTimeout(this.#republishTimer);
  }

  async unpublish(): Promise<void> {
    clearTimeout(this.#republishTimer);
    await this.#publishing.drop();
    await this.#host.unpublishAll();
  }

  mute(trackId: string, muted: boolean): Promise<void> {
    return this.#publishing.mute(trackId, muted);
  }

  subscribe(tracks: ClientMessages['subscribe']['tracks']): void {
    this.#subscribing.subscribe(tracks);
  }

  unsubscribe(tracks: ClientMessages['unsubscribe']['tracks']): void {
    this.#subscribing.unsubscribe(tracks);
  }

  answer(offerId: number, sdp: string): Promise<void> {
    return this.#subscribing.answer(offerId, sdp);
  }

  /** Returns false when there is no such peer connection (any more): a late candidate is no mistake. */
  async candidate({ target, candidate }: ClientMessages['candidate']): Promise<boolean> {
    return target === 'publisher'
      ? this.#publishing.addCandidate(candidate)
      : this.#subscribing.addCandidate(candidate);
  }

  /** The client has thrown these away, because they failed at its end. */
  async reset(targets: readonly PeerTarget[]): Promise<void> {
    if (targets.includes('publisher')) {
      await this.#publishing.drop();
      this.#lost.delete('publisher');
      this.#expectRepublish();
    }
    if (targets.includes('subscriber')) {
      await this.#subscribing.drop();
      this.#lost.delete('subscriber');
      this.#subscribing.unblock();
    }
  }

  /** Gives both back. Resolves when the media server has let go of them, or cannot be reached. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#republishTimer);
    this.#stopTelling();
    await Promise.all([this.#publishing.close(), this.#subscribing.close()]);
  }

  #place(): MediaPlace | null {
    const snapshot = this.#host.snapshot();
    const node = this.#places.up(snapshot?.mediaNodeId ?? null);
    return snapshot === null || node === null ? null : { node, generation: snapshot.mediaGeneration };
  }

  #dropBoth(): void {
    if (this.#publishing.isActive) this.#lost.add('publisher');
    if (this.#subscribing.isActive) this.#lost.add('subscriber');
    void this.#publishing.drop();
    void this.#subscribing.drop();
  }

  #lose(target: PeerTarget, pauseMs: number): void {
    if (this.#closed) return;
    this.#lost.add(target);
    if (this.#place() === null) return;
    if (pauseMs === 0) this.#tellLost();
    else this.#tellTimer ??= setTimeout(() => this.#tellLost(), pauseMs);
  }

  #tellLost(): void {
    this.#stopTelling();
    if (this.#closed || this.#lost.size === 0 || !this.#host.isConnected || this.#place() === null) return;
    const targets = [...this.#lost];
    this.#lost.clear();
    this.#host.send({ type: 'mediaReset', targets });
    if (targets.includes('publisher')) this.#expectRepublish();
    if (targets.includes('subscriber')) this.#subscribing.unblock();
  }

  #stopTelling(): void {
    clearTimeout(this.#tellTimer);
    this.#tellTimer = undefined;
  }

  /** What is not published again is not published: nobody should wait for tracks that never come. */
  #expectRepublish(): void {
    clearTimeout(this.#republishTimer);
    if (this.#closed) return;
    this.#republishTimer = setTimeout(() => {
      if (this.#closed || this.#publishing.isAnnounced || !this.#host.isConnected) return;
      void this.#host.unpublishAll().catch((error: unknown) => {
        this.#host.logger.warn('tracks not unpublished', { sessionId: this.#host.sessionId, error });
        this.#expectRepublish();
      });
    }, REPUBLISH_WITHIN_MS);
  }
}

function placedOn(placement: RoomPlacement | null): { nodeId: string | null; generation: number } {
  return { nodeId: placement?.mediaNodeId ?? null, generation: placement?.mediaGeneration ?? 0 };
}

/** The failure that a request of the client's ends in when the media server cannot carry it out. */
export function mediaUnavailable(cause?: unknown): RequestFailure {
  return new RequestFailure('media_unavailable', undefined, undefined, { cause });
}
