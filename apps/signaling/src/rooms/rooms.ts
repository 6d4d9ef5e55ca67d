import { setImmediate as nextImmediate } from 'node:timers/promises';
import { SERVER_SENDER } from '@callplane/core';
import { readRoomChanges, type Database, type RoomChanges, type RoomRead } from '@callplane/db';
import { inboxOf, type RoomBus, type RoomMessage } from '@callplane/queue';
import { Batches, ONE_QUEUE, type Logger } from '@callplane/runtime';
import type { ReadReason, SignalingMetrics } from '../metrics.js';
import type { Departure, RoomMember } from './changes.js';
import { Room } from './room.js';
import { messageOf, receiveReport } from './passed.js';

export interface RoomsDeps {
  bus: RoomBus;
  database: Database;
  instanceId: string;
  logger: Logger;
  metrics: Pick<SignalingMetrics, 'partDropped' | 'roomRead'>;
}

/** A read of a room that waits or runs. Requests that wait for the same read are combined. */
interface Read {
  readonly roomId: string;
  /** Of combined requests, the reason of the first one counts. */
  readonly why: ReadReason;
  complete: boolean;
  publish: boolean;
  done: Promise<unknown>;
}

const ROOMS_PER_READ_MAX = 200;
const READS_MAX = 3;
const EACH_SECOND_MS = 1000;
/** A part is lost if its receiver reads too slowly. Its sender sends it again. */
const PART = '{"type":"part"';
/** How often a room is read completely: in a restored database, the version of a change may be known already. */
const COMPLETE_EVERY_MS = 60_000;

/** The rooms in which this instance holds sessions. Notices and a periodic resync keep them up to date. */
export class Rooms {
  readonly #held = new Map<string, Room>();
  readonly #timer: NodeJS.Timeout;
  readonly #reads: Batches<Read, true>;
  readonly #waiting = new Map<string, Read>();

  constructor(
    private readonly deps: RoomsDeps,
    private readonly onDeparture: (member: RoomMember, departure: Departure) => void,
  ) {
    this.#reads = new Batches({
      run: (_, reads) => this.#readAll(reads),
      sizeMax: ROOMS_PER_READ_MAX,
      atOnce: READS_MAX,
    });
    this.#timer = setInterval(() => {
      for (const room of this.#held.values()) room.eachSecond();
    }, EACH_SECOND_MS);
    this.#timer.unref();
  }

  get all(): Iterable<Room> {
    return this.#held.values();
  }

  close(): void {
    clearInterval(this.#timer);
    for (const room of this.#held.values()) room.close();
  }

  /** Returns the room. It lives until it is released as often as it was acquired. */
  acquire(roomId: string): Room {
    const room = this.#held.get(roomId) ?? this.#add(roomId);
    room.holders += 1;
    return room;
  }

  release(room: Room): void {
    room.holders -= 1;
    if (room.holders > 0) return;
    room.close();
    this.#held.delete(room.roomId);
    this.deps.bus.unsubscribe(room.roomId);
  }

  /** Resolves once a read that began after this call has been applied. */
  load(roomId: string): Promise<void> {
    return this.#read(roomId, 'check');
  }

  /**
   * Call this after a commit that changed the room: it reads the changes, and notifies other instances of them.
   * Resolves when this instance shows the change. Never rejects; the next resync makes up for a failed read or notice.
   */
  async changed(roomId: string): Promise<void> {
    await this.#read(roomId, 'changed', { publish: true }).catch((error: unknown) => {
      this.deps.logger.warn('room changes not loaded', { roomId, error });
      void this.deps.bus.publishChanged(roomId, null);
    });
  }

  /**
   * Like {@link changed}, before a welcome, which shows the room with the client's own session in it.
   * @param joined the session, and all changes of the write; null if it does not return them. If they continue the
   * known version, this instance need not read the room.
   * @throws if the room cannot be read.
   */
  async loadForWelcome(roomId: string, joined?: { sessionId: string; changes: RoomChanges | null }): Promise<void> {
    const room = this.#held.get(roomId);
    if (room === undefined) throw new Error(`${roomId} is not held`);
    const known = room.state?.version ?? null;
    const { changes = null, sessionId = '' } = joined ?? {};
    const isNews = changes !== null && (known === null || known < changes.version);
    // Another client of the batch may have shown them before.
    const isShown = changes !== null && room.sessions.entries.has(sessionId);
    // The next batch of joins begins before the welcomes of this one are built. They leave before the messages to
    // others.
    const immediate = nextImmediate();
    if (isNews && !isShown && (changes.after === null || changes.after === known)) {
      this.#apply({ roomId, publish: true }, changes, known);
    } else if (!isShown) {
      await this.#read(roomId, 'changed', { publish: true });
      return;
    }
    await immediate;
  }

  async resync(): Promise<void> {
    const nowMs = performance.now();
    await Promise.all(
      [...this.#held].map(([roomId, { completeAtMs }]) =>
        this.#read(roomId, 'poll', { complete: nowMs - completeAtMs >= COMPLETE_EVERY_MS }),
      ),
    );
  }

  /** @returns false if recipients on other instances could not be reached. */
  pass(room: Room, passed: RoomMessage): boolean | Promise<boolean> {
    this.#deliver(room, passed);
    const { to } = passed;
    const isPassedOn = to === null ? room.sessions.isElsewhere : to.some((id) => room.sessions.isHeldElsewhere(id));
    return !isPassedOn || this.deps.bus.publishMessage(room.roomId, passed);
  }

  /** @returns null if no API process waits for such a reply, false if it could not be reached. */
  reply(askId: string, passed: RoomMessage): Promise<boolean> | null {
    const inbox = inboxOf(askId);
    return inbox === undefined ? null : this.deps.bus.publishMessage(inbox, passed);
  }

  #add(roomId: string): Room {
    const { bus, instanceId } = this.deps;
    const room = new Room(roomId, instanceId, this.onDeparture, (kind, report) => {
      if (room.sessions.isElsewhere) void bus.publishReport(roomId, kind, report);
    });
    this.#held.set(roomId, room);
    bus.subscribe(roomId, {
      changed: (version) => this.#onChanged(room, version),
      message: (message) => void this.#onMessage(room, messageOf(message)),
      report: (kind, report, from) => receiveReport(room, kind, report, from),
    });
    return room;
  }

  /** For each room at most one read waits. The room ignores an older one that ends later. */
  async #read(roomId: string, why: ReadReason, { complete = false, publish = false } = {}): Promise<void> {
    let read = this.#waiting.get(roomId);
    if (read === undefined) {
      read = { roomId, why, complete: false, publish: false, done: Promise.resolve() };
      this.#waiting.set(roomId, read);
      read.done = this.#reads.add(ONE_QUEUE, read);
    }
    read.complete ||= complete;
    read.publish ||= publish;
    await read.done;
  }

  async #readAll(reads: readonly Read[]): Promise<Promise<true>[]> {
    const begun = reads.map((read): RoomRead & { read: Read; known: number | null } => {
      const { complete, roomId, why } = read;
      this.#waiting.delete(roomId);
      this.deps.metrics.roomRead(why);
      const known = this.#held.get(roomId)?.state?.version ?? null;
      return { read, roomId, known, after: complete ? null : known };
    });
    const rows = begun.map(({ roomId, after }) => ({ roomId, after }));
    const changes = await readRoomChanges(this.deps.database.sql, rows);
    // A room that cannot take over its changes fails alone.
    return begun.map(
      ({ read, roomId, known }) =>
        new Promise<true>((resolve) => {
          this.#apply(read, changes.get(roomId) ?? null, known);
          resolve(true);
        }),
    );
  }

  #apply(
    { publish, roomId }: Pick<Read, 'publish' | 'roomId'>,
    changes: RoomChanges | null,
    known: number | null,
  ): void {
    const room = this.#held.get(roomId);
    if (changes?.after === null && room !== undefined) room.completeAtMs = performance.now();
    room?.apply(changes, known);
    if (changes === null || !publish) return;
    // After a welcome, and the messages to the members here.
    setImmediate(() => void this.deps.bus.publishChanged(roomId, changes.version));
  }

  /**
   * Notices may be lost, repeated and reordered, and any writer of Redis can forge them. So a notice only says that
   * there is something to read (docs/decisions/0011-the-call-path.md).
   */
  #onChanged(room: Room, version: number | null): void {
    const known = room.state?.version ?? null;
    if (known === null || version === null || version > known) void this.#readAfterNotice(room.roomId);
  }

  /** A sender that this instance does not know yet has joined a moment ago, or does not exist. */
  async #onMessage(room: Room, message: RoomMessage): Promise<void> {
    const isKnown = (): boolean => isSender(room, message.from);
    if (!isKnown()) await this.#readAfterNotice(room.roomId);
    if (isKnown()) this.#deliver(room, message);
  }

  #deliver(room: Room, { from, to, text }: RoomMessage): void {
    const send = (member: RoomMember | undefined): void => {
      if (member === undefined || member.participantId === from) return;
      if (!text.startsWith(PART)) member.sendText(text);
      else if (!member.sendPart(text)) this.deps.metrics.partDropped();
    };
    if (to === null) room.members.forEach(send);
    else for (const id of new Set(to)) send(room.memberOf(id));
  }

  #readAfterNotice(roomId: string): Promise<void> {
    return this.#read(roomId, 'gap').catch((error: unknown) => {
      this.deps.logger.warn('room changes not loaded', { roomId, error });
    });
  }
}

function isSender({ sessions }: Room, from: string): boolean {
  return from === SERVER_SENDER || sessions.entryOf(from) !== undefined;
}
