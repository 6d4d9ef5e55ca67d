import { isOpen } from '@callplane/core';
import type { RoomSnapshot, SessionState } from '@callplane/db';
import type { RemoteParticipant } from '@callplane/protocol';
import pLimit from 'p-limit';
import { diffRoom, presentSession } from './diff-room.js';

/** A session that this instance holds, as its room's view needs it. */
export interface RoomMember {
  readonly sessionId: string;
  readonly participantId: string;
  /** Counts the connections of its session. */
  readonly connectionNumber: number;
  tellText(text: string): void;
  /** The room has been read again, with the member in it, or its media server has come or gone. */
  onRoom(): void;
}

/** One writes while the next one is on its way. */
const JOINS_PER_ROOM = 2;

/** What the truth says about a member that is no longer ours. */
export type Departure =
  /** The room is closing or gone. */
  | 'room_ended'
  /** Another instance holds the session. */
  | 'moved'
  /** The session is not among the live ones; its row says why. */
  | 'missing';

/** A room in which this instance holds sessions: what its members were last told, and how they learn what has changed. */
export class RoomView {
  readonly roomId: string;
  readonly #instanceId: string;
  readonly #onDeparture: (member: RoomMember, departure: Departure) => void;
  readonly #members = new Map<string, RoomMember>();
  #told: RoomSnapshot | null = null;
  /**
   * Joins take turns on the room's row. Those that wait for it here wait without a database connection, of which a
   * crowd at one room would leave none for anything else.
   */
  readonly joins = pLimit(JOINS_PER_ROOM);
  /** Joins and resumes under way count too, so that the view is not thrown away below them. */
  holders = 0;

  constructor(roomId: string, instanceId: string, onDeparture: (member: RoomMember, departure: Departure) => void) {
    this.roomId = roomId;
    this.#instanceId = instanceId;
    this.#onDeparture = onDeparture;
  }

  get members(): Iterable<RoomMember> {
    return this.#members.values();
  }

  get size(): number {
    return this.#members.size;
  }

  /** The room as its members know it; null until it has been read. */
  get snapshot(): RoomSnapshot | null {
    return this.#told;
  }

  /** Whether the room is known to be ending, ended or gone. */
  get isClosed(): boolean {
    return this.#told !== null && !isOpen(this.#told.room.status);
  }

  sessionOf(participantId: string): SessionState | undefined {
    return this.#told?.sessions.find(({ participant }) => participant.id === participantId);
  }

  /** The own participant and the others, as this member is told them when it comes. */
  presentTo(sessionId: string): { participant: RemoteParticipant; participants: RemoteParticipant[] } | null {
    const sessions = this.#told?.sessions ?? [];
    const own = sessions.find((session) => session.sessionId === sessionId);
    if (own === undefined) return null;
    return {
      participant: presentSession(own),
      participants: sessions.filter((session) => session !== own).map(presentSession),
    };
  }

  /** Whether what was read last says that this is no member of ours. */
  departureOf(member: RoomMember): Departure | null {
    if (this.isClosed) return 'room_ended';
    return this.#departureOf(
      member,
      this.#told?.sessions.find(({ sessionId }) => sessionId === member.sessionId),
    );
  }

  add(member: RoomMember): void {
    this.#members.set(member.sessionId, member);
  }

  remove(member: RoomMember): void {
    if (this.#members.get(member.sessionId) === member) this.#members.delete(member.sessionId);
  }

  /** Takes over what was read: lets go of members that are no longer ours, and tells the others what has changed. */
  apply(snapshot: RoomSnapshot | null): void {
    if (snapshot === null || !isOpen(snapshot.room.status)) {
      for (const member of [...this.#members.values()]) this.#depart(member, 'room_ended');
      this.#told = snapshot;
      return;
    }
    const live = new Map(snapshot.sessions.map((session) => [session.sessionId, session]));
    for (const member of [...this.#members.values()]) {
      const departure = this.#departureOf(member, live.get(member.sessionId));
      if (departure !== null) this.#depart(member, departure);
    }
    const changes = diffRoom(this.#told, snapshot);
    this.#told = snapshot;
    for (const { about, message } of changes) {
      const text = JSON.stringify(message);
      for (const member of this.#members.values()) if (member.participantId !== about) member.tellText(text);
    }
    for (const member of [...this.#members.values()]) member.onRoom();
  }

  mediaChanged(): void {
    for (const member of [...this.#members.values()]) member.onRoom();
  }

  #departureOf(member: RoomMember, session: SessionState | undefined): Departure | null {
    if (session === undefined) return 'missing';
    // On this instance a higher number is a resumption that is just under way.
    return session.connection > member.connectionNumber && session.instanceId !== this.#instanceId ? 'moved' : null;
  }

  #depart(member: RoomMember, departure: Departure): void {
    this.#members.delete(member.sessionId);
    this.#onDeparture(member, departure);
  }
}
