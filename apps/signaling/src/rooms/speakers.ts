import { PROTOCOL_LIMITS } from '@callplane/protocol';
import { LRUCache } from 'lru-cache';
import { LatestReports, Paced, type ReportedRoom, type SendReport } from './quality.js';

/** Gateways repeat who talks at their publishers this often, in milliseconds. */
export const SPEAKERS_REPEATED_MS = 2000;
/** Tracks of one gateway that carry speech at a time. More are ignored. */
export const TALKING_MAX = 64;
const REMEMBERED_MAX = 1000;
/** The shortest pause between two reports to other gateways, and between two changes of the received tracks. */
const REPORT_EVERY_MS = 250;
/** The shortest pause between two messages to the members: this, or 1 ms for five members if that is longer. */
const SEND_EVERY_MS = 500;
const MEMBERS_PER_MS = 5;

/** Tracks that carry speech, each with its level in dBov without the sign: 0 is the loudest, 127 silence. */
export type Talking = readonly (readonly [trackKey: string, level: number])[];

/**
 * Who talks in a room, and who talked last. Each gateway reports the complete list of its own publishers, and repeats
 * it: a lost report lasts for a moment only, and the report of a dead gateway is forgotten.
 */
export class Speakers {
  version = 0;
  readonly #own = new Map<string, number>();
  readonly #reports = new LatestReports<ReadonlyMap<string, number>>(3 * SPEAKERS_REPEATED_MS);
  readonly #lastMs = new LRUCache<string, number>({ max: REMEMBERED_MAX });

  /** @param level null: the track carries speech no longer. @returns whether anything has changed */
  note(trackKey: string, level: number | null, nowMs: number): boolean {
    if (level === null) {
      if (!this.#own.delete(trackKey)) return false;
    } else {
      if (!this.#own.has(trackKey) && this.#own.size >= TALKING_MAX) return false;
      this.#own.set(trackKey, level);
    }
    this.#lastMs.set(trackKey, nowMs);
    this.version += 1;
    return true;
  }

  receive(gateway: string, talking: Talking, nowMs: number): void {
    const before = this.#reports.get(gateway) ?? new Map<string, number>();
    const now = new Map(talking);
    this.#reports.set(gateway, now, nowMs);
    for (const key of new Set([...before.keys(), ...now.keys()])) this.#lastMs.set(key, nowMs);
    if (!isSame(before, now)) this.version += 1;
  }

  /** Forgets gateways that have not reported for a while, and tracks that are gone. */
  expire(isPublished: (trackKey: string) => boolean, nowMs: number): void {
    if (this.#reports.expire(nowMs)) this.version += 1;
    for (const key of this.#own.keys()) if (!isPublished(key)) this.note(key, null, nowMs);
    for (const key of this.#lastMs.keys()) if (!isPublished(key)) this.#lastMs.delete(key);
  }

  get own(): Talking {
    return [...this.#own];
  }

  levelOf(trackKey: string): number | undefined {
    const report = this.#reports.all.find((talking) => talking.has(trackKey));
    return this.#own.get(trackKey) ?? report?.get(trackKey);
  }

  lastMs(trackKey: string): number {
    return this.#lastMs.peek(trackKey) ?? -Infinity;
  }

  get talking(): Talking {
    return [...this.#own, ...this.#reports.all.flatMap((talking) => [...talking])];
  }
}

function isSame(a: ReadonlyMap<string, number>, b: ReadonlyMap<string, number>): boolean {
  return a.size === b.size && [...b].every(([key, level]) => a.get(key) === level);
}

/** Collects who talks in a room, reports it to the other gateways, and sends it to the members, each at a bounded rate. */
export class RoomSpeakers {
  readonly state = new Speakers();
  readonly #flushes = new Paced(
    () => REPORT_EVERY_MS,
    () => this.#flush(),
  );
  readonly #sends = new Paced(
    () => Math.max(SEND_EVERY_MS, this.room.members.length / MEMBERS_PER_MS),
    () => this.#send(),
  );
  #sentText = '[]';
  #reportedMs = -Infinity;
  #isReportDue = false;

  constructor(
    private readonly room: ReportedRoom,
    private readonly report: SendReport,
  ) {}

  /** A track of this gateway's publishers carries speech from now on, or (null) no longer. */
  note(key: string, level: number | null): void {
    if (!this.state.note(key, level, performance.now())) return;
    this.#isReportDue = true;
    this.#flushes.soon();
  }

  receive(gateway: string, talking: Talking): void {
    const { version } = this.state;
    this.state.receive(gateway, talking, performance.now());
    if (this.state.version !== version) this.#flushes.soon();
  }

  /** Repeats the report to other gateways, and forgets the ones that are gone. */
  eachSecond(): void {
    const { version, own } = this.state;
    const nowMs = performance.now();
    this.state.expire((key) => this.room.tracks.entries.has(key), nowMs);
    if (own.length > 0 && nowMs - this.#reportedMs >= SPEAKERS_REPEATED_MS) this.#isReportDue = true;
    if (this.#isReportDue || this.state.version !== version) this.#flushes.soon();
  }

  present(): string | null {
    const text = this.#text();
    return text === '[]' ? null : messageOf(text);
  }

  /** Tracks were muted, unmuted or unpublished: their participants may no longer be speakers. */
  onTracks(): void {
    if (this.#sentText !== '[]') this.#sends.soon();
  }

  close(): void {
    this.#flushes.close();
    this.#sends.close();
  }

  #flush(): void {
    if (this.#isReportDue) {
      this.#isReportDue = false;
      this.#reportedMs = performance.now();
      this.report('speakers', this.state.own);
    }
    this.room.wakeMembers();
    this.#sends.soon();
  }

  #send(): void {
    const text = this.#text();
    if (text === this.#sentText) return;
    this.#sentText = text;
    for (const member of this.room.members) member.sendText(messageOf(text));
  }

  /** The speakers as JSON, the loudest first. A participant with several microphones has the level of the loudest. */
  #text(): string {
    const levels = new Map<string, number>();
    for (const [key, dBov] of this.state.talking) {
      const track = this.room.tracks.entries.get(key);
      if (track?.source !== 'microphone' || this.room.tracks.isMuted(track)) continue;
      levels.set(track.participantId, Math.min(dBov, levels.get(track.participantId) ?? Infinity));
    }
    const speakers = [...levels]
      .sort(([, a], [, b]) => a - b)
      .slice(0, PROTOCOL_LIMITS.speakersMax)
      .map(([participantId, dBov]) => ({ participantId, level: amplitudeOf(dBov) }));
    return JSON.stringify(speakers);
  }
}

function amplitudeOf(dBov: number): number {
  return Math.round(10 ** (-dBov / 20) * 100) / 100;
}

function messageOf(speakers: string): string {
  return `{"type":"speakers","speakers":${speakers}}`;
}
