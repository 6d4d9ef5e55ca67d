import { formatTimestamp } from '../time.js';

/** Name of a participant whose data was erased; not empty, because a name needs at least one character. */
const ERASED_PARTICIPANT_NAME = 'Erased';

/** Replaces a participant's personal data. */
export const ERASED_PARTICIPANT = { name: ERASED_PARTICIPANT_NAME, externalId: null, metadata: {} } as const;

/**
 * Removes the personal data of its participant from the JSON text of an event, and adds `erasedAt` for readers. An
 * erased event is never sent again, so no receiver sees two different bodies of it.
 */
export function eraseEventBody(body: string, erasedAt: Date): string {
  const event = JSON.parse(body) as { data: { participant?: object } };
  if (event.data.participant !== undefined) Object.assign(event.data.participant, ERASED_PARTICIPANT);
  return JSON.stringify({ ...event, erasedAt: formatTimestamp(erasedAt) });
}
