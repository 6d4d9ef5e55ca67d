import type { Room } from './room.js';

/** A client's message to clients of other instances. */
export interface Passed {
  from: string;
  /** Participant ids; null for all other participants. */
  to: string[] | null;
  /** The message as the clients get it. */
  text: string;
}

/**
 * Encodes the server message `message`.
 * @param data as JSON text, which the caller has measured already: the message is not serialised a second time.
 */
export function encodeMessage(from: string, to: string[] | null, data: string, sentAt: string): Passed {
  // An id and a timestamp need no escaping.
  return { from, to, text: `{"type":"message","from":"${from}","data":${data},"sentAt":"${sentAt}"}` };
}

/** @returns null if another version of this software has sent something else. */
export function parsePassed(message: unknown): Passed | null {
  if (typeof message !== 'object' || message === null) return null;
  const { from, to, text } = message as Partial<Passed>;
  return typeof from === 'string' && typeof text === 'string' ? { from, to: to ?? null, text } : null;
}

/** Sends a message to the members of this instance that it is for. */
export function deliver(room: Room, { from, to, text }: Passed): void {
  if (to === null) {
    for (const member of room.members) if (member.participantId !== from) member.sendText(text);
    return;
  }
  for (const id of new Set(to)) {
    if (id !== from) for (const member of room.membersOf(id)) member.sendText(text);
  }
}

/** Whether a message has recipients whose sessions this instance does not hold. Possibly no instance holds them. */
export function hasRecipientsElsewhere(room: Room, to: string[] | null): boolean {
  return to === null ? room.isElsewhere : to.some((id) => room.isHeldElsewhere(id));
}
