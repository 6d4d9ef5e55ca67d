import type { RosterPage } from '../rooms/roster.js';

/**
 * Serialises a message with participants that are serialised already.
 * @param message with at least one field and without `participants`
 */
export function withParticipants(message: object, participants: readonly string[]): string {
  return `${JSON.stringify(message).slice(0, -1)},"participants":[${participants.join(',')}]}`;
}

/** Serialises a message that carries a page of the roster. */
export function pageText(message: object, { participants, ...page }: RosterPage): string {
  return withParticipants({ ...message, ...page }, participants);
}
