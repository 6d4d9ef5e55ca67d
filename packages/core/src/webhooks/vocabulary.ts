/** Every type of event. */
export const EVENT_TYPES = [
  'room.created',
  'room.started',
  'room.ended',
  'participant.joined',
  'participant.left',
  'track.published',
  'track.unpublished',
  'operation.failed',
  'webhook.disabled',
  'webhook.test',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** An endpoint that subscribes to this gets all of them. */
export const ALL_EVENTS = '*';

export const DELIVERY_STATUSES = ['pending', 'delivering', 'succeeded', 'failed'] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

export const DELIVERY_FAILURE_REASONS = [
  'attempts_exhausted',
  'rejected',
  'unsafe_destination',
  'run_expired',
  'endpoint_deleted',
] as const;
export type DeliveryFailureReason = (typeof DELIVERY_FAILURE_REASONS)[number];

/** The stage that an attempt ended in. */
export const ATTEMPT_OUTCOMES = ['success', 'dns', 'connect', 'tls', 'timeout', 'response', 'blocked'] as const;
export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number];

export const RECOVERY_STATUSES = ['pending', 'completed', 'cancelled'] as const;
export type RecoveryStatus = (typeof RECOVERY_STATUSES)[number];

export const ENDPOINTS_PER_ENVIRONMENT_MAX = 50;
/** As the contract says; served by the signature contract too. */
export const REPLAYS_MAX = 100;
export const DELIVERY_DEADLINE_SECONDS = 10;
export const DNS_DEADLINE_SECONDS = 5;
export const RUN_AGE_DAYS_MAX = 7;
export const TERMINAL_RETENTION_DAYS = 30;
/** Of an answer's body so much is kept in the attempt log. */
export const RESPONSE_BODY_KEPT_BYTES = 1024;

/** What an event says happened. `data` names its resources, each as the API returns it. */
export interface EventContent {
  id: string;
  type: EventType;
  createdAt: Date;
  projectId: string;
  environmentId: string;
  /** Strictly increasing and gap-free per room; null for events of no room. */
  sequence: number | null;
  data: Record<string, unknown>;
}

/** The bytes of an event, serialised once: every delivery, retry and replay sends these. */
export function serialiseEvent(event: EventContent): string {
  return JSON.stringify({
    id: event.id,
    type: event.type,
    apiVersion: 'v1',
    createdAt: event.createdAt.toISOString(),
    projectId: event.projectId,
    environmentId: event.environmentId,
    sequence: event.sequence,
    data: event.data,
  });
}
