import type { QualityLevel } from '@callplane/core';
import type { RoomChange, RoomMember } from './changes.js';
import type { ReportedRoom, SendReport } from './reports.js';

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
