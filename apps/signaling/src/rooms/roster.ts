import type { SessionState } from '@callplane/db';
import { PROTOCOL_LIMITS } from '@callplane/protocol';
import { isViewer, participantText, subjectOf, type RoomChange } from './changes.js';
import type { RoomState } from './state.js';

/** A page of the roster. Participants are JSON texts of `RemoteParticipant`. */
export interface RosterPage {
  participants: string[];
  next: string | null;
  participantCount: number;
  viewerCount: number;
}

/** The participants of a room in the order of their session ids. Only `everyone` includes viewers. */
export class Roster {
  readonly #state: RoomState;
  readonly #ids = new SortedIds();

  constructor(state: RoomState) {
    this.#state = state;
  }

  apply(changes: readonly RoomChange[]): void {
    for (const change of changes) {
      const { sessionId } = subjectOf(change);
      const state = change.after?.state ?? null;
      if (state !== null && !isViewer(state)) this.#ids.add(sessionId);
      else this.#ids.delete(sessionId);
    }
  }

  get counts(): { participantCount: number; viewerCount: number } {
    const participantCount = this.#state.entries.size;
    return { participantCount, viewerCount: participantCount - this.#ids.all.length };
  }

  /** @param limit maximum number of participants. A page has at least one, whatever its size. */
  page(cursor: string | null, limit: number): RosterPage {
    return { ...this.#pageOf(this.#sessionsAfter(cursor), limit), ...this.counts };
  }

  firstPage(publishers: () => readonly SessionState[]): RosterPage {
    const isPaged = this.#state.info?.rosterPaged === true;
    return { ...(isPaged ? this.#publishersFirst(publishers()) : this.#everyone()), ...this.counts };
  }

  #everyone(): Pick<RosterPage, 'participants' | 'next'> {
    const sessions = [...this.#state.entries.values()].flatMap(({ state }) => state ?? []);
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
      const state = this.#state.entries.get(id)?.state;
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
