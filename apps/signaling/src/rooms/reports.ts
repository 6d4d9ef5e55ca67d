import type { RoomMember } from './changes.js';
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
