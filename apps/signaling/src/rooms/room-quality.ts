import type { Members, RoomMember } from './members.js';
import { QualityLevels, type QualityEntry, type QualityNotice } from './quality-levels.js';
import type { RoomChange } from './room-change.js';
import type { RoomState } from './room-state.js';
import type { Shown } from './shown.js';

/** Tells the members of a room the quality that participants report. */
export class RoomQuality {
  readonly levels = new QualityLevels();
  readonly #members: Members;
  readonly #state: RoomState;
  readonly #shown: Shown<RoomMember>;

  constructor(members: Members, state: RoomState, shown: Shown<RoomMember>) {
    this.#members = members;
    this.#state = state;
    this.#shown = shown;
  }

  /** Forgets participants that have left. */
  apply(changes: readonly RoomChange[]): void {
    for (const { before, after } of changes) {
      if (before !== null && after === null) this.levels.delete(before.participantId);
    }
  }

  /**
   * Sends the members the levels that have changed, of the participants that they show.
   * @returns the notice for other instances; null without one.
   */
  eachSecond(): QualityNotice | null {
    const entries = this.levels.takeChanged();
    if (entries.length > 0) {
      const text = textOf(entries);
      for (const member of this.#members.all) {
        if (this.#isPaged) this.#sendTo(member, entries);
        else member.sendText(text);
      }
    }
    return this.levels.takeReported();
  }

  /** Sends a member the levels below `good`, after its welcome or a `show`. */
  welcome(member: RoomMember): void {
    this.#sendTo(member, this.levels.impaired());
  }

  get #isPaged(): boolean {
    return this.#state.info?.rosterPaged === true;
  }

  #sendTo(member: RoomMember, entries: readonly QualityEntry[]): void {
    const isPaged = this.#isPaged;
    const shown = entries.filter(
      ({ participantId }) =>
        participantId !== member.participantId && (!isPaged || this.#shown.isShown(member, participantId)),
    );
    if (shown.length > 0) member.sendText(textOf(shown));
  }
}

function textOf(participants: readonly QualityEntry[]): string {
  return JSON.stringify({ type: 'quality', participants });
}
