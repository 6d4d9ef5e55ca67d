import type { SessionEndReason } from '@callplane/core';
import { isFull, reviveRoom, toSession, type RoomChanges, type SessionTuple } from '@callplane/db';
import type { RoomNotice } from '@callplane/queue';
import { isViewer, type RoomChange, type SessionEntry } from './changes.js';

export type RoomInfo = Omit<RoomChanges, 'after' | 'sessions'>;

interface Applied {
  changes: RoomChange[];
  before: RoomInfo | null;
  after: RoomInfo | null;
}

/**
 * The sessions of a room at one version. Changes lead from version to version. A complete read replaces all sessions.
 * An older one is ignored, unless it comes from a restored database.
 */
export class RoomState {
  /** Null until the room was read, and when it does not exist. */
  info: RoomInfo | null = null;
  readonly entries = new Map<string, SessionEntry>();
  readonly #ofParticipant = new Map<string, SessionEntry>();
  readonly #instanceId: string;
  /** The sessions that other instances hold, counted by instance. The empty id stands for sessions that none holds. */
  readonly #elsewhere = new Map<string, number>();

  constructor(instanceId: string) {
    this.#instanceId = instanceId;
  }

  entryOf(participantId: string): SessionEntry | undefined {
    return this.#ofParticipant.get(participantId);
  }

  /** The other instances that hold sessions of the room; an empty id if there are sessions that no instance holds. */
  get otherInstances(): ReadonlySet<string> {
    return new Set(this.#elsewhere.keys());
  }

  /** Whether the room has sessions that this instance does not hold. */
  get isElsewhere(): boolean {
    return this.#elsewhere.size > 0;
  }

  isHeldElsewhere(participantId: string): boolean {
    const entry = this.entryOf(participantId);
    return entry !== undefined && entry.instanceId !== this.#instanceId;
  }

  /**
   * Takes over what was read or notified. Ignores what it knows already: sessions up to the own version, and reads that
   * are older than it.
   * @param atStart the version known when the read began. A complete read below it comes from a restored database.
   */
  apply(read: RoomChanges | null, atStart: number | null = null): Applied {
    const before = this.info;
    if (read === null) return this.#clear();
    const isRestored = read.after === null && atStart !== null && read.version < atStart;
    if (before !== null && read.version < before.version && !isRestored) {
      return { changes: [], before, after: before };
    }
    if (before === null && read.after !== null) throw new Error(`changes of ${read.room.id}, which was never read`);
    const { sessions: _, after: __, ...info } = read;
    this.info = info;
    const changes = this.#applySessions(read, before?.version ?? 0);
    if (read.rosterPaged && before?.rosterPaged === false) changes.push(...this.#forgetViewers());
    return { changes, before, after: this.info };
  }

  #clear(): Applied {
    const before = this.info;
    const changes = [...this.entries.values()].map((entry) => ({ before: entry, after: null, gone: null }));
    this.info = null;
    this.entries.clear();
    this.#ofParticipant.clear();
    this.#elsewhere.clear();
    return { changes, before, after: null };
  }

  #applySessions(read: RoomChanges, known: number): RoomChange[] {
    const { room, after, sessions } = read;
    const changes: RoomChange[] = [];
    if (after === null) {
      const live = new Set(sessions.map(([sessionId]) => sessionId));
      for (const entry of [...this.entries.values()]) {
        if (!live.has(entry.sessionId)) changes.push(...this.#delete(entry.sessionId, null));
      }
    }
    for (const tuple of sessions) {
      const [sessionId, , , , version, gone] = tuple;
      if (after !== null && version <= known) continue;
      changes.push(...(gone === null ? this.#set(toEntry(room.id, tuple)) : this.#delete(sessionId, gone)));
    }
    return changes;
  }

  #set(entry: SessionEntry): RoomChange[] {
    const before = this.entries.get(entry.sessionId) ?? null;
    if (before !== null && sameEntry(before, entry)) return [];
    this.entries.set(entry.sessionId, entry);
    this.#ofParticipant.set(entry.participantId, entry);
    this.#count(entry, 1);
    this.#count(before, -1);
    return [{ before, after: entry, gone: null }];
  }

  #delete(sessionId: string, gone: SessionEndReason | null): RoomChange[] {
    const before = this.entries.get(sessionId);
    if (before === undefined) return [];
    this.entries.delete(sessionId);
    this.#count(before, -1);
    if (this.#ofParticipant.get(before.participantId) === before) this.#ofParticipant.delete(before.participantId);
    return [{ before, after: null, gone }];
  }

  #count(entry: SessionEntry | null, by: number): void {
    if (entry === null || entry.instanceId === this.#instanceId) return;
    const id = entry.instanceId ?? '';
    const count = (this.#elsewhere.get(id) ?? 0) + by;
    if (count === 0) this.#elsewhere.delete(id);
    else this.#elsewhere.set(id, count);
  }

  /** The room became paged: its viewers are only counted from now on. */
  #forgetViewers(): RoomChange[] {
    return [...this.entries.values()].flatMap((entry) =>
      entry.state !== null && isViewer(entry.state) ? this.#set({ ...entry, state: null }) : [],
    );
  }
}

function toEntry(roomId: string, tuple: SessionTuple): SessionEntry {
  const [sessionId, participantId, connection, instanceId, version] = tuple;
  const state = isFull(tuple) ? toSession(roomId, tuple) : null;
  return { sessionId, participantId, connection, instanceId, version, state };
}

/** Compares the text, because a complete read repeats every session. */
function sameEntry(before: SessionEntry, after: SessionEntry): boolean {
  if (before.connection !== after.connection || before.instanceId !== after.instanceId) return false;
  if (before.version !== after.version) return false;
  if (before.state === null || after.state === null) return before.state === after.state;
  return JSON.stringify(before.state) === JSON.stringify(after.state);
}

/**
 * What an instance does with a notice about a room. Notices may be lost, repeated and reordered. One is applied only if it continues what is known; after a gap the
 * instance reads.
 * @param known the version of the room that this instance knows; null if it has not read the room yet.
 */
export function reactionTo({ range, changes }: RoomNotice, known: number | null): 'ignore' | 'apply' | 'read' {
  if (known === null || range.version === null) return 'read';
  if (known >= range.version) return 'ignore';
  return changes !== undefined && range.after !== null && range.after <= known ? 'apply' : 'read';
}

/** The changes of a notice: JSON has no dates. */
export function reviveChanges(notified: unknown): RoomChanges {
  const changes = notified as RoomChanges;
  return { ...changes, room: reviveRoom(changes.room) };
}
