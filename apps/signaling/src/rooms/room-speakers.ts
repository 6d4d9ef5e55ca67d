import { PROTOCOL_LIMITS } from '@callplane/protocol';
import type { RoomMember } from './members.js';
import { Speakers, SPEAKERS_REPEATED_MS, type Talking } from './speakers.js';
import type { TrackIndex } from './track-index.js';

/** The shortest pause between two reports to other gateways, and between two changes of what members receive. */
const REPORT_EVERY_MS = 250;
/** The shortest pause between two messages to the members: this, or 1 ms for five members if that is longer. */
const SEND_EVERY_MS = 500;
const MEMBERS_PER_MS = 5;

export interface RoomSpeakersPort {
  members(): Iterable<RoomMember>;
  memberCount(): number;
  /** The speakers have changed: what members receive may change. */
  wake(): void;
  /** Reports to the other gateways of the room. */
  report(talking: Talking): void;
}

/** Collects who talks in a room, reports it to the other gateways, and sends it to the members, each at a bounded rate. */
export class RoomSpeakers {
  readonly state = new Speakers();
  readonly #index: TrackIndex;
  readonly #port: RoomSpeakersPort;
  #flushTimer: NodeJS.Timeout | undefined;
  #flushedMs = -Infinity;
  #sendTimer: NodeJS.Timeout | undefined;
  #sentMs = -Infinity;
  #sentText = '[]';
  #reportedMs = -Infinity;
  #isReportDue = false;
  #isClosed = false;

  constructor(index: TrackIndex, port: RoomSpeakersPort) {
    this.#index = index;
    this.#port = port;
  }

  /** A track of this gateway's publishers carries speech from now on, or (null) no longer. */
  note(key: string, level: number | null): void {
    if (this.#isClosed) return;
    const { version } = this.state;
    this.state.note(key, level, performance.now());
    if (this.state.version === version) return;
    this.#isReportDue = true;
    this.#flushLater();
  }

  receive(gateway: string, talking: Talking): void {
    const { version } = this.state;
    this.state.receive(gateway, talking, performance.now());
    if (this.state.version !== version) this.#flushLater();
  }

  /** Repeats the report to other gateways, and forgets what is gone. */
  eachSecond(): void {
    const { version, own } = this.state;
    const nowMs = performance.now();
    this.state.expire((key) => this.#index.entries.has(key), nowMs);
    if (own.length > 0 && nowMs - this.#reportedMs >= SPEAKERS_REPEATED_MS) this.#isReportDue = true;
    if (this.#isReportDue || this.state.version !== version) this.#flushLater();
  }

  /** The message for a new member; null without speakers. */
  present(): string | null {
    const text = this.#text();
    return text === '[]' ? null : messageOf(text);
  }

  /** Tracks were muted, unmuted or unpublished: their participants may no longer be speakers. */
  onTracks(): void {
    if (this.#sentText !== '[]') this.#sendLater();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#flushTimer);
    clearTimeout(this.#sendTimer);
  }

  #flushLater(): void {
    const waitMs = Math.max(0, this.#flushedMs + REPORT_EVERY_MS - performance.now());
    this.#flushTimer ??= setTimeout(() => this.#flush(), waitMs);
  }

  #flush(): void {
    this.#flushTimer = undefined;
    this.#flushedMs = performance.now();
    if (this.#isReportDue) {
      this.#isReportDue = false;
      this.#reportedMs = this.#flushedMs;
      this.#port.report(this.state.own);
    }
    this.#port.wake();
    this.#sendLater();
  }

  #sendLater(): void {
    const everyMs = Math.max(SEND_EVERY_MS, this.#port.memberCount() / MEMBERS_PER_MS);
    const waitMs = Math.max(0, this.#sentMs + everyMs - performance.now());
    this.#sendTimer ??= setTimeout(() => this.#send(), waitMs);
  }

  #send(): void {
    this.#sendTimer = undefined;
    const text = this.#text();
    if (text === this.#sentText) return;
    this.#sentText = text;
    this.#sentMs = performance.now();
    const message = messageOf(text);
    for (const member of this.#port.members()) member.sendText(message);
  }

  /** The speakers as JSON, the loudest first. A participant with several microphones has the level of the loudest. */
  #text(): string {
    const levels = new Map<string, number>();
    for (const [key, dBov] of this.state.talking) {
      const track = this.#index.entries.get(key);
      if (track?.source !== 'microphone' || this.#index.isMuted(track)) continue;
      levels.set(track.participantId, Math.min(dBov, levels.get(track.participantId) ?? Infinity));
    }
    const speakers = [...levels]
      .sort(([, a], [, b]) => a - b)
      .slice(0, PROTOCOL_LIMITS.speakersMax)
      .map(([participantId, dBov]) => ({ participantId, level: amplitudeOf(dBov) }));
    return JSON.stringify(speakers);
  }
}

/** From 0 to 1, with two digits. */
function amplitudeOf(dBov: number): number {
  return Math.round(10 ** (-dBov / 20) * 100) / 100;
}

function messageOf(speakers: string): string {
  return `{"type":"speakers","speakers":${speakers}}`;
}
