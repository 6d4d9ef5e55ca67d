import type { SessionState } from '@callplane/db';
import { PROTOCOL_LIMITS } from '@callplane/protocol';
import {
  changedEntry,
  changesText,
  goneEntry,
  isViewer,
  participantEntry,
  participantText,
  type RoomChange,
  type RoomMember,
  type SessionEntry,
  subjectOf,
} from './changes.js';
import type { RoomState, SortedIds } from './state.js';

interface Showing {
  participantIds: ReadonlySet<string>;
  publishers: boolean;
}

/** How long changes of a paged room wait, so that one frame carries all of them. */
const TICK_MS = 50;
const SHOWS_PUBLISHERS: Showing = { participantIds: new Set(), publishers: true };

/**
 * Who shows whom in a paged room: each id of a member's last `show` and, unless the member declines it, the first
 * publishers by session id. A change costs as much as it has receivers: members without a `show` of their own share one
 * frame.
 */
export class Shown {
  readonly #showing = new Map<RoomMember, Showing>();
  readonly #showersOf = new Map<string, Set<RoomMember>>();
  /** Participants that have changed since the last flush, with their sessions at that time. */
  readonly #changed = new Map<string, SessionEntry | null>();
  /** The participants whom members showed as publishers at the last flush. */
  #published = new Set<string>();
  #tick: NodeJS.Timeout | undefined;

  constructor(
    private readonly state: RoomState,
    private readonly publishers: SortedIds,
  ) {}

  add(member: RoomMember): void {
    if (!this.#showing.has(member)) this.#showing.set(member, SHOWS_PUBLISHERS);
  }

  remove(member: RoomMember): void {
    this.#forget(member);
    this.#showing.delete(member);
  }

  /** Replaces the shown participants. @returns the present state of the ones that are in the roster. */
  show(member: RoomMember, participantIds: readonly string[], publishers: boolean): string[] {
    this.#forget(member);
    this.#showing.set(member, { participantIds: new Set(participantIds), publishers });
    for (const id of participantIds) {
      const showers = this.#showersOf.get(id);
      if (showers === undefined) this.#showersOf.set(id, new Set([member]));
      else showers.add(member);
    }
    const ids = new Set([...participantIds, ...(publishers ? this.#publishedNow() : [])]);
    return [...ids].flatMap((id) => {
      const state = inRoster(this.state.entryOf(id));
      return state === null ? [] : [participantText(state)];
    });
  }

  isShown(member: RoomMember, participantId: string): boolean {
    const showing = this.#showing.get(member);
    if (showing === undefined) return false;
    return showing.participantIds.has(participantId) || (showing.publishers && this.#published.has(participantId));
  }

  firstPublishers(): SessionState[] {
    const ids = this.publishers.all.slice(0, PROTOCOL_LIMITS.publishersShownMax);
    return ids.flatMap((id) => this.state.entries.get(id)?.state ?? []);
  }

  /** Begins anew: the members have just been sent the present state. */
  reset(): void {
    this.stop();
    this.#changed.clear();
    this.#published = this.#publishedNow();
  }

  noteSoon(changes: readonly RoomChange[]): void {
    for (const change of changes) {
      if (inRoster(change.before) === null && inRoster(change.after) === null) continue;
      const { participantId } = subjectOf(change);
      if (!this.#changed.has(participantId)) this.#changed.set(participantId, change.before);
    }
    if (this.#changed.size === 0) return;
    this.#tick ??= setTimeout(() => {
      this.#tick = undefined;
      this.#flush();
    }, TICK_MS);
  }

  stop(): void {
    clearTimeout(this.#tick);
    this.#tick = undefined;
  }

  /** Sends each member the changes since the last flush of the participants that it shows. */
  #flush(): void {
    const frames = new Map<RoomMember, string[]>();
    const published = this.#published;
    this.#published = this.#publishedNow();
    for (const [id, before] of this.#changed) {
      const entries = entriesOf(before, this.state.entryOf(id));
      for (const member of this.#showersOf.get(id) ?? []) append(frames, member, entries);
    }
    this.#flushPublishers(published, frames);
    this.#changed.clear();
    for (const [member, entries] of frames) {
      const text = changesText(entries);
      if (text !== null) member.sendText(text);
    }
  }

  #flushPublishers(published: ReadonlySet<string>, frames: Map<RoomMember, string[]>): void {
    const entries = new Map<string, string[]>();
    for (const id of new Set([...published, ...this.#published])) {
      const after = this.state.entryOf(id) ?? null;
      // A participant that is no longer among the first publishers is hidden, like one that becomes a viewer.
      const shownAfter = this.#published.has(id) || after === null ? after : { ...after, state: null };
      if (!published.has(id)) entries.set(id, entriesOf(null, after));
      else if (this.#changed.has(id)) entries.set(id, entriesOf(this.#changed.get(id) ?? null, shownAfter));
      else if (!this.#published.has(id)) entries.set(id, entriesOf(after, shownAfter));
    }
    const text = changesText([...entries.values()].flat());
    if (text === null) return;
    for (const [member, { participantIds, publishers }] of this.#showing) {
      if (!publishers) continue;
      if (participantIds.size === 0) member.sendText(text);
      else for (const [id, own] of entries) if (!participantIds.has(id)) append(frames, member, own);
    }
  }

  #publishedNow(): Set<string> {
    return new Set(this.firstPublishers().map(({ participant }) => participant.id));
  }

  #forget(member: RoomMember): void {
    for (const id of this.#showing.get(member)?.participantIds ?? []) {
      const showers = this.#showersOf.get(id);
      showers?.delete(member);
      if (showers?.size === 0) this.#showersOf.delete(id);
    }
  }
}

/** The state of a participant in the roster; null for viewers and participants that are not in the room. */
function inRoster(entry: SessionEntry | null | undefined): SessionState | null {
  return entry?.state && !isViewer(entry.state) ? entry.state : null;
}

/** The changes that turn `before` into `after`, as a client has to know them. */
function entriesOf(before: SessionEntry | null, after: SessionEntry | null | undefined): string[] {
  const was = inRoster(before);
  const is = inRoster(after);
  if (is === null) {
    if (before === null || was === null) return [];
    // The session may be another one than the client knows.
    return after ? [goneEntry('hidden', { ...after, sessionId: before.sessionId })] : [goneEntry('left', before)];
  }
  if (before === null || was === null) return [participantEntry(is)];
  if (was.sessionId !== is.sessionId) return [goneEntry('left', before), participantEntry(is)];
  const entry = changedEntry(was, is);
  return entry === null ? [] : [entry];
}

function append(frames: Map<RoomMember, string[]>, member: RoomMember, entries: readonly string[]): void {
  if (entries.length === 0) return;
  const frame = frames.get(member);
  if (frame === undefined) frames.set(member, [...entries]);
  else frame.push(...entries);
}
