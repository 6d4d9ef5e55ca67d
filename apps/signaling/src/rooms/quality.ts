import type { QualityLevel } from '@callplane/core';
import type { RoomChange, RoomMember } from './changes.js';
import type { Shown } from './shown.js';
import type { RoomInfo } from './state.js';
import type { TrackIndex } from './tracks.js';

/**
 * A gateway's report to the others that hold sessions of a room: which of its publishers talk, which tracks and layers
 * its members want, and changed levels of quality. Any report may be lost.
 */
type ReportKind = 'speakers' | 'layers' | 'quality';
export type SendReport = (kind: ReportKind, report: unknown) => void;

export interface ReportedRoom {
  readonly members: readonly RoomMember[];
  readonly state: RoomInfo | null;
  readonly shown: Shown;
  readonly tracks: TrackIndex;
  wakeMembers(): void;
}

/** The latest report of each gateway. One that its gateway does not repeat counts no more. */
export class LatestReports<Report> {
  readonly #reports = new Map<string, { report: Report; atMs: number }>();

  constructor(private readonly staleAfterMs: number) {}

  get(gateway: string): Report | undefined {
    return this.#reports.get(gateway)?.report;
  }

  get all(): Report[] {
    return [...this.#reports.values()].map(({ report }) => report);
  }

  set(gateway: string, report: Report, nowMs: number): void {
    this.#reports.set(gateway, { report, atMs: nowMs });
  }

  /** Forgets reports that have become too old. @returns whether there were any */
  expire(nowMs: number): boolean {
    const { size } = this.#reports;
    for (const [gateway, { atMs }] of this.#reports) {
      if (nowMs - atMs > this.staleAfterMs) this.#reports.delete(gateway);
    }
    return this.#reports.size < size;
  }
}

/** Runs work that is wanted often, with a shortest pause between two runs. */
export class Paced {
  #timer: NodeJS.Timeout | undefined;
  #ranMs = -Infinity;
  #isClosed = false;

  constructor(
    private readonly pauseMs: () => number,
    private readonly work: () => void,
  ) {}

  soon(): void {
    if (this.#isClosed) return;
    const waitMs = Math.max(0, this.#ranMs + this.pauseMs() - performance.now());
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#ranMs = performance.now();
      this.work();
    }, waitMs);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }
}

export interface QualityEntry {
  participantId: string;
  level: QualityLevel;
}

/** The quality that the participants of a room report. A crash or a lost report only delays a level. */
export class RoomQuality {
  readonly #levels = new Map<string, QualityLevel>();
  /** Participants whose level the members of this instance do not know yet. */
  readonly #changed = new Set<string>();
  /** Participants whose level other instances do not know yet. */
  readonly #reported = new Set<string>();
  /** A session has come to an instance, which may have missed earlier reports. */
  #hasArrival = false;

  constructor(
    private readonly room: ReportedRoom,
    private readonly report: SendReport,
  ) {}

  note(participantId: string, level: QualityLevel): void {
    if (this.#set(participantId, level)) this.#reported.add(participantId);
  }

  receive(entries: readonly QualityEntry[]): void {
    for (const { participantId, level } of entries) this.#set(participantId, level);
  }

  apply(changes: readonly RoomChange[]): void {
    for (const { before, after } of changes) {
      if (after !== null && after.instanceId !== before?.instanceId) this.#hasArrival = true;
      if (before === null || after !== null) continue;
      for (const ids of [this.#levels, this.#changed, this.#reported]) ids.delete(before.participantId);
    }
  }

  /** Sends the members the levels that have changed, of the participants that they show, and other instances all. */
  eachSecond(): void {
    const entries = this.#take(this.#changed);
    if (entries.length > 0) {
      const text = textOf(entries);
      for (const member of this.room.members) {
        if (this.#isPaged) this.#sendTo(member, entries);
        else member.sendText(text);
      }
    }
    for (const { participantId } of this.#hasArrival ? this.room.members : []) {
      if ((this.#levels.get(participantId) ?? 'good') !== 'good') this.#reported.add(participantId);
    }
    this.#hasArrival = false;
    const reported = this.#take(this.#reported);
    if (reported.length > 0) this.report('quality', reported);
  }

  /** Sends a member the levels below `good`, after its welcome or a `show`. */
  welcome(member: RoomMember): void {
    const impaired = [...this.#levels].filter(([, level]) => level !== 'good');
    this.#sendTo(
      member,
      impaired.map(([participantId, level]) => ({ participantId, level })),
    );
  }

  get #isPaged(): boolean {
    return this.room.state?.rosterPaged === true;
  }

  #sendTo(member: RoomMember, entries: readonly QualityEntry[]): void {
    const isPaged = this.#isPaged;
    const shown = entries.filter(
      ({ participantId }) =>
        participantId !== member.participantId && (!isPaged || this.room.shown.isShown(member, participantId)),
    );
    if (shown.length > 0) member.sendText(textOf(shown));
  }

  #set(participantId: string, level: QualityLevel): boolean {
    if (this.#levels.get(participantId) === level) return false;
    this.#levels.set(participantId, level);
    this.#changed.add(participantId);
    return true;
  }

  #take(ids: Set<string>): QualityEntry[] {
    const entries = [...ids].flatMap((participantId) => {
      const level = this.#levels.get(participantId);
      return level === undefined ? [] : [{ participantId, level }];
    });
    ids.clear();
    return entries;
  }
}

function textOf(participants: readonly QualityEntry[]): string {
  return JSON.stringify({ type: 'quality', participants });
}
