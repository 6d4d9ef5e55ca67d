import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { forwardedFeedId, forwardPorts, nodeOfFeed } from '@callplane/core';
import {
  beginForward,
  giveUpForward,
  keepForwards,
  openedForward,
  openForwards,
  type Database,
  type ForwardLimits,
  type OpenForward,
} from '@callplane/db';
import type { MediaNode } from '@callplane/media';
import type { Logger } from '@callplane/runtime';
import pLimit from 'p-limit';
import type { Room } from '../rooms/room.js';
import { streamName, trackKey, type IndexedTrack, type TrackIndex } from '../rooms/tracks.js';
import type { MediaPlaces } from './places.js';

/** Pauses between attempts to open a forward, in milliseconds. The last one repeats. */
const AGAIN_MS = [300, 600, 1200, 2500, 5000];
const AT_ONCE_MAX = 8;

/** The tracks that can be received on one media server, with their streams there. */
export type TrackView = Pick<TrackIndex, 'entries' | 'hasStream'>;

/** Receives forwarded tracks. */
export interface ForwardUser {
  /** A track that it uses can be received, or cannot any more. */
  onForwards(): void;
}

interface Use {
  room: Room;
  node: MediaNode;
  /** Tracks on other media servers. */
  tracks: readonly IndexedTrack[];
}

export interface ForwardsDeps {
  database: Database;
  logger: Logger;
  places: Pick<MediaPlaces, 'up'>;
  forwardLimits: ForwardLimits;
}

/** Whether sessions of the room may be on several media servers. */
export function isSpread({ state }: Pick<Room, 'state'>): boolean {
  return state !== null && state.furtherNodeIds.length > 0;
}

/**
 * The forwards between media servers that the sessions of this gateway use. The gateway opens the ones that are missing,
 * and says every few seconds which it uses. A cleanup worker closes the others
 * (docs/decisions/0023-several-media-servers.md).
 */
export class Forwards {
  /** The newest open forward of each feed to each node, by {@link keyOf}. */
  readonly #open = new Map<string, OpenForward>();
  /** By the key of the forward. */
  readonly #uses = new Map<string, Map<ForwardUser, Use>>();
  readonly #keysOf = new Map<ForwardUser, readonly string[]>();
  readonly #opening = new Set<string>();
  readonly #limit = pLimit(AT_ONCE_MAX);
  readonly #closing = new AbortController();
  readonly #views = new WeakMap<Room, Map<string, { basis: string; view: TrackView }>>();
  /** Grows when `#open` has changed. */
  #version = 0;

  constructor(private readonly deps: ForwardsDeps) {}

  /** Forwards to each media server that sessions of this gateway use. */
  get counts(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { toNodeId } of this.#open.values()) counts[toNodeId] = (counts[toNodeId] ?? 0) + 1;
    return counts;
  }

  /** The tracks of a room as a node has them. Tracks that are not forwarded to it yet are missing. */
  view(room: Room, node: MediaNode): TrackView {
    if (!isSpread(room)) return room.tracks;
    const basis = `${room.tracks.version} ${this.#version} ${room.state?.mediaNodeId ?? ''}`;
    const views = this.#views.get(room) ?? new Map<string, { basis: string; view: TrackView }>();
    this.#views.set(room, views);
    const known = views.get(node.id);
    if (known?.basis === basis) return known.view;
    const tracks = [...room.tracks.entries.values()].flatMap((track) => this.#at(room, node, track) ?? []);
    const streams = new Set(tracks.map(streamName));
    const view = {
      entries: new Map(tracks.map((track) => [trackKey(track), track])),
      hasStream: (stream: Parameters<TrackView['hasStream']>[0]) => streams.has(streamName(stream)),
    };
    views.set(node.id, { basis, view });
    return view;
  }

  /** Reads which forwards to a node are open. */
  async load(room: Room, node: MediaNode): Promise<void> {
    const feedIds = [...room.tracks.entries.values()].map(({ feedId }) => feedId);
    for (const forward of await openForwards(this.deps.database.sql, node.id, feedIds)) this.#note(forward);
  }

  /** @param tracks the ones that the user receives or wants to receive, and that are on other nodes */
  use(user: ForwardUser, room: Room, node: MediaNode, tracks: readonly IndexedTrack[]): void {
    this.release(user);
    const uses = new Map<string, Use & { tracks: IndexedTrack[] }>();
    for (const track of tracks) {
      const key = keyOf(node.id, track.feedId);
      const use = uses.get(key) ?? { room, node, tracks: [] };
      uses.set(key, use);
      use.tracks.push(track);
    }
    this.#keysOf.set(user, [...uses.keys()]);
    for (const [key, use] of uses) {
      const users = this.#uses.get(key) ?? new Map<ForwardUser, Use>();
      this.#uses.set(key, users.set(user, use));
      if (this.#covers(key, use) || this.#opening.has(key)) continue;
      this.#opening.add(key);
      void this.#openUntilDone(key).finally(() => this.#opening.delete(key));
    }
  }

  release(user: ForwardUser): void {
    for (const key of this.#keysOf.get(user) ?? []) {
      const users = this.#uses.get(key);
      users?.delete(user);
      if (users?.size === 0) this.#uses.delete(key);
    }
    this.#keysOf.delete(user);
  }

  /** A media server does not have a feed that it is said to receive: it has restarted. */
  async lost(name: string): Promise<void> {
    const [key] = [...this.#open].find(([, forward]) => forward.name === name) ?? [];
    if (key === undefined) return;
    this.#forget([key]);
    await giveUpForward(this.deps.database.sql, name).catch((error: unknown) => {
      this.deps.logger.warn('forward not given up', { name, error });
    });
  }

  /** Says which forwards have receivers here, and forgets the ones that others have closed. */
  async keep(): Promise<void> {
    this.#forget([...this.#open.keys()].filter((key) => !this.#uses.has(key)));
    const open = [...this.#open];
    const kept = await keepForwards(
      this.deps.database.sql,
      open.map(([, { name }]) => name),
    );
    this.#forget(
      open.flatMap(([key, { name }]) => (kept.has(name) || this.#open.get(key)?.name !== name ? [] : [key])),
    );
  }

  close(): void {
    this.#closing.abort();
    this.#uses.clear();
    this.#keysOf.clear();
  }

  /** @returns null if the node does not have the track */
  #at(room: Room, node: MediaNode, track: IndexedTrack): IndexedTrack | null {
    if (homeOf(room, track) === node.id) return track;
    const forward = this.#open.get(keyOf(node.id, track.feedId));
    const place = forward?.mids.indexOf(track.mid) ?? -1;
    return forward === undefined || place === -1 ? null : { ...track, feedId: forward.name, mid: String(place) };
  }

  #covers(key: string, { tracks }: Use): boolean {
    const mids = this.#open.get(key)?.mids;
    return mids !== undefined && tracks.every(({ mid }) => mids.includes(mid));
  }

  #wanted(key: string): Use | null {
    for (const use of this.#uses.get(key)?.values() ?? []) if (!this.#covers(key, use)) return use;
    return null;
  }

  /** Tries until the forward is open, or nobody wants it any more. */
  async #openUntilDone(key: string): Promise<void> {
    for (let failures = 0; !this.#closing.signal.aborted; failures += 1) {
      const wanted = this.#wanted(key);
      if (wanted === null) return;
      await this.#limit(() => this.#tryToOpen(wanted)).catch((error: unknown) => {
        this.deps.logger.warn('forward not opened', { forward: key, roomId: wanted.room.roomId, error });
      });
      if (this.#wanted(key) === null) return;
      const pauseMs = AGAIN_MS[Math.min(failures, AGAIN_MS.length - 1)];
      await delay(pauseMs, undefined, { signal: this.#closing.signal, ref: false }).catch(() => undefined);
    }
  }

  /** Finds the forward that another gateway has opened, or opens one. */
  async #tryToOpen({ room, node, tracks }: Use): Promise<void> {
    const { database, forwardLimits, places } = this.deps;
    const [first] = tracks;
    if (first === undefined || room.state === null) return;
    const { feedId } = first;
    const found = (await openForwards(database.sql, node.id, [feedId])).at(-1);
    if (found !== undefined && tracks.every(({ mid }) => found.mids.includes(mid))) {
      this.#note(found);
      return;
    }
    const from = places.up(homeOf(room, first));
    if (from === null || from === node) return;
    const name = forwardedFeedId(feedId, randomBytes(4).toString('hex'));
    const { roomId, state } = room;
    const forward = { roomId, feedId, fromNodeId: from.id, toNodeId: node.id };
    const port = await beginForward(database.sql, state.tenant, forward, name, forwardLimits);
    if (port === null) return;
    const extensionIds = new Map(
      room.tracks
        .of(first.participantId)
        .flatMap(({ mid, extensionId }) => (extensionId === undefined ? [] : [[mid, extensionId]])),
    );
    try {
      const mids = await node.receiveFrom(from, roomId, feedId, { name, port, extensionIds });
      if (!(await openedForward(database.sql, name, mids))) throw new Error(`${name} was opened too late`);
      this.#note({ name, feedId, toNodeId: node.id, mids });
    } catch (error) {
      await giveUpForward(database.sql, name);
      throw error;
    }
  }

  #note(forward: OpenForward): void {
    const key = keyOf(forward.toNodeId, forward.feedId);
    if (this.#open.get(key)?.name === forward.name) return;
    this.#open.set(key, forward);
    this.#tell([key]);
  }

  #forget(keys: readonly string[]): void {
    for (const key of keys) this.#open.delete(key);
    if (keys.length > 0) this.#tell(keys);
  }

  /** Users answer with `use`. */
  #tell(keys: readonly string[]): void {
    this.#version += 1;
    const users = new Set(keys.flatMap((key) => [...(this.#uses.get(key)?.keys() ?? [])]));
    for (const user of users) user.onForwards();
  }
}

function keyOf(toNodeId: string, feedId: string): string {
  return `${toNodeId} ${feedId}`;
}

/** The node that the track is published on. */
function homeOf({ state }: Room, { feedId }: IndexedTrack): string | null {
  return nodeOfFeed(feedId) ?? state?.mediaNodeId ?? null;
}

/** @throws Error that names the fault */
export function forwardLimits(range: string): ForwardLimits {
  const { feeds: ports } = forwardPorts(range);
  return { ports, environmentMax: Math.ceil(ports.length / 2) };
}
