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
