import type { Departure, Members, RoomMember } from './members.js';
import { subjectOf, type RoomChange } from './room-change.js';

/** Members that depart at once. A large room that ends would otherwise block the process. */
const DEPARTURES_MAX = 500;
/** Pause between two groups of members that depart, in milliseconds. */
const PAUSE_MS = 50;

/** Finds the members whose sessions this instance no longer holds. */
export class DepartedMembers {
  readonly #members: Members;
  readonly #departureOf: (member: RoomMember) => Departure | null;
  readonly #depart: (member: RoomMember, departure: Departure) => void;
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param departureOf why a member departs according to the room's state; null if it stays
   * @param depart removes the member
   */
  constructor(
    members: Members,
    departureOf: (member: RoomMember) => Departure | null,
    depart: (member: RoomMember, departure: Departure) => void,
  ) {
    this.#members = members;
    this.#departureOf = departureOf;
    this.#depart = depart;
  }

  /** @param isComplete whether the changes come from a complete read, which does not say why a session is missing */
  apply(changes: readonly RoomChange[], isComplete: boolean): void {
    if (isComplete) for (const member of this.#members.all) this.#departIf(member, this.#departureOf(member));
    else {
      for (const change of changes) {
        const member = this.#members.get(subjectOf(change).sessionId);
        if (member !== undefined) this.#departIf(member, change.gone ?? this.#departureOf(member));
      }
    }
  }

  /** The room ends: all members depart, in groups. */
  endRoom(): void {
    clearTimeout(this.#timer);
    const members = this.#members.all;
    for (const member of members.slice(0, DEPARTURES_MAX)) this.#depart(member, 'room_ended');
    if (members.length > DEPARTURES_MAX) this.#timer = setTimeout(() => this.endRoom(), PAUSE_MS);
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #departIf(member: RoomMember, departure: Departure | null): void {
    if (departure !== null) this.#depart(member, departure);
  }
}
