import { readRoomChanges, type Database, type RoomChanges, type SessionState } from '@callplane/db';
import type { RoomBus, RoomNotice } from '@callplane/queue';
import type { Logger } from '@callplane/runtime';
import { parseLayers } from './layer-wants.js';
import { deliver, encodeMessage, hasRecipientsElsewhere, parsePassed } from './messages.js';
import { reactionTo, reviveChanges } from './notices.js';
import { parseQuality } from './quality-levels.js';
import { RoomLoader, type LoadOptions, type ReadReason } from './room-loader.js';
import { Room, type Departure, type RoomMember } from './room.js';
import { parseTalking } from './speakers.js';

export interface RoomsDeps {
  bus: RoomBus;
  database: Database;
  /** Identifies this process in the database and to other instances. */
  instanceId: string;
  logger: Logger;
  metrics: {
    /** Counts a room that is read from PostgreSQL. */
    roomRead(why: ReadReason): void;
  };
}

/**
 * Interval of the periodic work of all rooms: connection quality, speakers and layers. A paged room also sends its
 * number of viewers.
 */
const EACH_SECOND_MS = 1000;
/** How often a room is read completely: in a restored database, the version of a change may be known already. */
const COMPLETE_EVERY_MS = 60_000;

/** What this class knows of a room beside the room itself. */
interface Held {
  room: Room;
  completeAtMs: number;
  countsSent: string;
}

/** The rooms in which this instance holds sessions. Notices and a periodic resync keep them up to date. */
export class Rooms {
  readonly #deps: RoomsDeps;
  readonly #onDeparture: (member: RoomMember, departure: Departure) => void;
  readonly #held = new Map<string, Held>();
  readonly #loader: RoomLoader;
  readonly #timer: NodeJS.Timeout;

  constructor(deps: RoomsDeps, onDeparture: (member: RoomMember, departure: Departure) => void) {
    this.#deps = deps;
    this.#onDeparture = onDeparture;
    this.#loader = new RoomLoader({
      read: (reads) => readRoomChanges(deps.database.sql, reads),
      versionOf: (roomId) => this.#held.get(roomId)?.room.state?.version ?? null,
      apply: (roomId, changes, known, options) => this.#apply(roomId, changes, known, options),
      onRead: (why) => deps.metrics.roomRead(why),
    });
    this.#timer = setInterval(() => this.#eachSecond(), EACH_SECOND_MS);
    this.#timer.unref();
  }

  get all(): Iterable<Room> {
    return [...this.#held.values()].map(({ room }) => room);
  }

  close(): void {
    clearInterval(this.#timer);
    for (const { room } of this.#held.values()) room.close();
  }

  /** Returns the room. It lives until it is released as often as it was acquired. */
  acquire(roomId: string): Room {
    let held = this.#held.get(roomId);
    if (held === undefined) {
      const { bus, instanceId } = this.#deps;
      const room = new Room(roomId, instanceId, this.#onDeparture, {
        speakers: (talking) => room.isElsewhere && void bus.publishSpeakers(roomId, talking),
        layers: (layers) => void bus.publishLayers(roomId, layers),
      });
      held = { room, completeAtMs: performance.now(), countsSent: '' };
      this.#held.set(roomId, held);
      this.#deps.bus.subscribe(roomId, {
        changed: (notice) => this.#onChanged(roomId, notice),
        message: (message) => this.#onPassed(roomId, message),
        speakers: (talking, from) => this.#onSpeakers(roomId, talking, from),
        layers: (layers, from) => this.#onLayers(roomId, layers, from),
      });
    }
    held.room.holders += 1;
    return held.room;
  }

  release(room: Room): void {
    room.holders -= 1;
    if (room.holders > 0) return;
    room.close();
    this.#held.delete(room.roomId);
    this.#deps.bus.unsubscribe(room.roomId);
  }

  /** Resolves once a read that began after this call has been applied. */
  load(roomId: string): Promise<void> {
    return this.#loader.load(roomId, { why: 'check' });
  }

  /**
   * Call this after a commit that changed the room: it reads what has changed, and notifies other instances of it.
   * Resolves when this instance shows the change. Never rejects; the next resync makes up for a failed read or notice.
   */
  async changed(roomId: string): Promise<void> {
    await this.#loader.load(roomId, { why: 'changed', publish: true }).catch((error: unknown) => {
      this.#deps.logger.warn('room changes not loaded', { roomId, error });
      void this.#deps.bus.publishChanged(roomId, { range: { after: null, version: null } });
    });
  }

  /**
   * Like {@link changed}, before a welcome, which shows the room with the client's own session in it.
   * @param own the client's session, as the write has returned it. The welcome of a known paged room uses it, and does
   *   not wait for the read.
   * @throws if the room cannot be read.
   */
  async loadForWelcome(roomId: string, own: SessionState): Promise<void> {
    const room = this.#held.get(roomId)?.room;
    if (room === undefined) throw new Error(`${roomId} is not held`);
    if (room.state?.rosterPaged === true) {
      room.learn(own);
      void this.changed(roomId);
      return;
    }
    await this.#loader.load(roomId, { why: 'changed', publish: true });
  }

  /** Reads all rooms again, to find changes whose notices were lost. */
  async resync(): Promise<void> {
    const nowMs = performance.now();
    await Promise.all(
      [...this.#held].map(([roomId, held]) => {
        const complete = nowMs - held.completeAtMs >= COMPLETE_EVERY_MS;
        return this.#loader.load(roomId, { why: 'poll', complete });
      }),
    );
  }

  /**
   * Delivers a client's message to members on this instance and passes it on to other instances.
   * @param to participant ids; null for all other participants.
   * @param data as JSON text.
   * @returns false if recipients on other instances could not be reached.
   */
  pass(room: Room, from: string, to: string[] | null, data: string, sentAt: string): boolean | Promise<boolean> {
    const passed = encodeMessage(from, to, data, sentAt);
    deliver(room, passed);
    return !hasRecipientsElsewhere(room, to) || this.#deps.bus.publishMessage(room.roomId, passed);
  }

  #apply(roomId: string, changes: RoomChanges | null, known: number | null, options: Required<LoadOptions>): void {
    const held = this.#held.get(roomId);
    if (changes !== null && options.publish) {
      const { after, version } = changes;
      void this.#deps.bus.publishChanged(roomId, { range: { after, version }, ...(after === null ? {} : { changes }) });
    }
    if (held === undefined) return;
    if (changes?.after === null) held.completeAtMs = performance.now();
    held.room.apply(changes, known);
  }

  #onChanged(roomId: string, notice: RoomNotice): void {
    const held = this.#held.get(roomId);
    if (held === undefined) return;
    const { state } = held.room;
    switch (reactionTo(notice, state?.version ?? null)) {
      case 'ignore':
        return;
      case 'apply':
        held.room.apply(reviveChanges(notice.changes));
        return;
      case 'read':
        this.#loader.load(roomId, { why: 'gap' }).catch((error: unknown) => {
          this.#deps.logger.warn('room changes not loaded', { roomId, error });
        });
    }
  }

  #onPassed(roomId: string, message: unknown): void {
    const room = this.#held.get(roomId)?.room;
    const levels = parseQuality(message);
    if (levels !== null) {
      room?.quality.levels.learn(levels);
      return;
    }
    const passed = parsePassed(message);
    if (room !== undefined && passed !== null) deliver(room, passed);
  }

  #onSpeakers(roomId: string, reported: unknown, from: string): void {
    const talking = parseTalking(reported);
    if (talking !== null) this.#held.get(roomId)?.room.speakers.receive(from, talking);
  }

  #onLayers(roomId: string, reported: unknown, from: string): void {
    const layers = parseLayers(reported);
    if (layers !== undefined) this.#held.get(roomId)?.room.layers.receive(from, layers);
  }

  #eachSecond(): void {
    for (const [roomId, held] of this.#held) {
      const { room } = held;
      const reported = room.quality.eachSecond();
      if (reported !== null && room.isElsewhere) void this.#deps.bus.publishMessage(roomId, reported);
      room.speakers.eachSecond();
      room.layers.eachSecond();
      if (room.state?.rosterPaged !== true) continue;
      const counts = JSON.stringify(room.counts);
      if (counts !== held.countsSent) room.sendCounts();
      held.countsSent = counts;
    }
  }
}
