import type { SessionEndReason } from '@callplane/core';
import { isFull, toSession, type RoomChanges, type SessionState, type SessionTuple } from '@callplane/db';
import { PROTOCOL_LIMITS } from '@callplane/protocol';
import { isViewer, participantText, subjectOf, type RoomChange, type SessionEntry } from './changes.js';

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
  /** The sessions in the lobby. They are no part of `entries`, of the changes, or of any count. */
  readonly waiting = new Map<string, SessionEntry>();
  readonly #ofParticipant = new Map<string, SessionEntry>();
  /** The sessions that other instances hold, counted by instance. The empty id stands for sessions that none holds. */
  readonly #elsewhere = new Map<string, number>();

  constructor(private readonly instanceId: string) {}

  entryOf(participantId: string): SessionEntry | undefined {
    return this.#ofParticipant.get(participantId);
  }

  /** The other instances that hold sessions of the room; an empty id if there are sessions that no instance holds. */
  get otherInstances(): ReadonlySet<string> {
    return new Set(this.#elsewhere.keys());
  }

  get isElsewhere(): boolean {
    return this.#elsewhere.size > 0;
  }

  isHeldBy(instanceId: string): boolean {
    return this.#elsewhere.has(instanceId);
  }

  isHeldElsewhere(participantId: string): boolean {
    const entry = this.entryOf(participantId);
    return entry !== undefined && entry.instanceId !== this.instanceId;
  }

  /**
   * Takes over a read. Ignores known facts: sessions up to the own version, and reads that are older than it.
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
    this.waiting.clear();
    this.#ofParticipant.clear();
    this.#elsewhere.clear();
    return { changes, before, after: null };
  }

  #applySessions(read: RoomChanges, known: number): RoomChange[] {
    const { room, after, sessions } = read;
    const changes: RoomChange[] = [];
    if (after === null) {
      const live = new Set(sessions.map(([sessionId]) => sessionId));
      for (const entry of [...this.entries.values(), ...this.waiting.values()]) {
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
    if (entry.state?.waiting === true) {
      this.waiting.set(entry.sessionId, entry);
      return [];
    }
    this.waiting.delete(entry.sessionId);
    const before = this.entries.get(entry.sessionId) ?? null;
    if (before !== null && sameEntry(before, entry)) return [];
    this.entries.set(entry.sessionId, entry);
    this.#ofParticipant.set(entry.participantId, entry);
    this.#count(entry, 1);
    this.#count(before, -1);
    return [{ before, after: entry, gone: null }];
  }

  #delete(sessionId: string, gone: SessionEndReason | null): RoomChange[] {
    this.waiting.delete(sessionId);
    const before = this.entries.get(sessionId);
    if (before === undefined) return [];
    this.entries.delete(sessionId);
    this.#count(before, -1);
    if (this.#ofParticipant.get(before.participantId) === before) this.#ofParticipant.delete(before.participantId);
    return [{ before, after: null, gone }];
  }

  #count(entry: SessionEntry | null, by: number): void {
    if (entry === null || entry.instanceId === this.instanceId) return;
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

/** A page of the roster. Participants are JSON texts of `RemoteParticipant`. */
export interface RosterPage {
  participants: string[];
  next: string | null;
  participantCount: number;
  viewerCount: number;
}

/** The participants of a room in the order of their session ids. Only `everyone` includes viewers. */
export class Roster {
  readonly #ids = new SortedIds();

  constructor(private readonly state: RoomState) {}

  apply(changes: readonly RoomChange[]): void {
    for (const change of changes) {
      const { sessionId } = subjectOf(change);
      const state = change.after?.state ?? null;
      if (state !== null && !isViewer(state)) this.#ids.add(sessionId);
      else this.#ids.delete(sessionId);
    }
  }

  get counts(): { participantCount: number; viewerCount: number } {
    const participantCount = this.state.entries.size;
    return { participantCount, viewerCount: participantCount - this.#ids.all.length };
  }

  /** @param limit maximum number of participants. A page has at least one, whatever its size. */
  page(cursor: string | null, limit: number): RosterPage {
    return { ...this.#pageOf(this.#sessionsAfter(cursor), limit), ...this.counts };
  }

  firstPage(publishers: () => readonly SessionState[]): RosterPage {
    const isPaged = this.state.info?.rosterPaged === true;
    return { ...(isPaged ? this.#publishersFirst(publishers()) : this.#everyone()), ...this.counts };
  }

  #everyone(): Pick<RosterPage, 'participants' | 'next'> {
    const sessions = [...this.state.entries.values()].flatMap(({ state }) => state ?? []);
    sessions.sort((a, b) => (a.sessionId < b.sessionId ? -1 : 1));
    return { participants: sessions.map(participantText), next: null };
  }

  #publishersFirst(publishers: readonly SessionState[]): Pick<RosterPage, 'participants' | 'next'> {
    const limit = Math.max(1, PROTOCOL_LIMITS.rosterPageMax - publishers.length);
    const page = this.#pageOf(this.#sessionsAfter(null), limit);
    const first = new Set(publishers.map(participantText));
    const participants = [...first, ...page.participants.filter((text) => !first.has(text))];
    return { participants, next: page.next };
  }

  *#sessionsAfter(cursor: string | null): Iterable<SessionState> {
    for (const id of this.#ids.after(cursor)) {
      const state = this.state.entries.get(id)?.state;
      if (state) yield state;
    }
  }

  #pageOf(sessions: Iterable<SessionState>, limit: number): { participants: string[]; next: string | null } {
    const participants: string[] = [];
    let bytes = 0;
    let last: string | null = null;
    for (const session of sessions) {
      const text = participantText(session);
      bytes += Buffer.byteLength(text);
      const isFull = participants.length >= limit || bytes > PROTOCOL_LIMITS.rosterPageBytesMax;
      if (isFull && participants.length > 0) return { participants, next: last };
      participants.push(text);
      last = session.sessionId;
    }
    return { participants, next: null };
  }
}

/** @param message with at least one field and without `participants` */
export function withParticipants(message: object, participants: readonly string[]): string {
  return `${JSON.stringify(message).slice(0, -1)},"participants":[${participants.join(',')}]}`;
}

export function pageText(message: object, { participants, ...page }: RosterPage): string {
  return withParticipants({ ...message, ...page }, participants);
}

/** Ids in order. New ids are mostly the greatest, because ids sort by the time of their creation. */
export class SortedIds {
  readonly all: string[] = [];

  add(id: string): void {
    const at = this.#position(id);
    if (this.all[at] !== id) this.all.splice(at, 0, id);
  }

  delete(id: string): void {
    const at = this.#position(id);
    if (this.all[at] === id) this.all.splice(at, 1);
  }

  /** The ids after this one; null begins with the first. */
  *after(id: string | null): Iterable<string> {
    let at = id === null ? 0 : this.#position(id);
    if (this.all[at] === id) at += 1;
    // By position, because copying the rest of a large roster for each page would be slow.
    for (let next = this.all[at]; next !== undefined; next = this.all[(at += 1)]) yield next;
  }

  #position(id: string): number {
    let low = 0;
    let high = this.all.length;
    const last = this.all[high - 1];
    if (last === undefined || last < id) return high;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.all[middle] ?? '') < id) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
