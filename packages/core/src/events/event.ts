import type { Tenant } from '../api-keys/scopes.js';
import { formatTimestamp } from '../time.js';

/** All event types. */
export const EVENT_TYPES = [
  'room.created',
  'room.started',
  'room.updated',
  'room.ended',
  'participant.joined',
  'participant.left',
  'participant.updated',
  'track.published',
  'track.unpublished',
  'track.muted',
  'operation.failed',
  'webhook.disabled',
  'webhook.endpoint.failing',
  'webhook.endpoint.recovered',
  'webhook.test',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/**
 * A finished event: everything except its id and its sequence, which it gets when it is written. The builders in
 * `*.events.ts` are the only place that decides its content.
 */
export interface NewEvent {
  readonly type: EventType;
  readonly tenant: Tenant;
  /** Null for events that belong to no room; they have no sequence. */
  readonly roomId: string | null;
  /** The participant whose personal data `data` contains. An erasure finds the event by it. */
  readonly participantId: string | null;
  readonly createdAt: Date;
  /** The resources of the event by name, each as the API returns it. */
  readonly data: Readonly<Record<string, unknown>>;
}

/**
 * Serialises an event, once: every delivery, retry and replay sends these bytes.
 * @param sequence strictly increasing and gap-free per room; null for events that belong to no room.
 */
export function serialiseEvent(
  { type, tenant, createdAt, data }: NewEvent,
  { id, sequence }: { id: string; sequence: number | null },
): string {
  return JSON.stringify({
    id,
    type,
    apiVersion: 'v1',
    createdAt: formatTimestamp(createdAt),
    projectId: tenant.projectId,
    environmentId: tenant.environmentId,
    sequence,
    data,
  });
}

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
