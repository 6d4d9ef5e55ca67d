import type { InputOf, WebhookDelivery } from '@callplane/server/requests';
import type { Tone } from '../../components/text.js';

export type EventType = WebhookDelivery['eventType'];
type Reason = NonNullable<WebhookDelivery['failureReason']>;

/** The meaning of each event type. The compiler refuses a missing one. */
export const EVENT_TEXTS: Record<EventType, string> = {
  'room.created': 'A room was created.',
  'room.started': 'The first participant joined.',
  'room.updated': 'Name, metadata or capacity of a room changed.',
  'room.ended': 'A call ended.',
  'participant.joined': 'A participant joined.',
  'participant.left': 'A participant left or was removed.',
  'participant.updated': 'Name, metadata or permissions of a participant changed.',
  'track.published': 'A participant sends audio or video.',
  'track.unpublished': 'A participant stopped a track.',
  'track.muted': 'A track was muted or unmuted.',
  'recording.started': 'A recording began.',
  'recording.stopped': 'A recording ended. Its files are made next.',
  'recording.completed': 'The files of a recording exist.',
  'recording.failed': 'The files of a recording cannot be made.',
  'operation.failed': 'A clean-up failed for good.',
  'webhook.disabled': 'An endpoint was disabled.',
  'webhook.endpoint.failing': 'All attempts of another endpoint have failed for 15 minutes.',
  'webhook.endpoint.recovered': 'A failing endpoint works again.',
  'webhook.test': 'A test that somebody asked for.',
};
export const EVENT_TYPES = Object.keys(EVENT_TEXTS) as EventType[];

export const STATUS_TONES: Record<WebhookDelivery['status'], Tone> = {
  pending: 'warn',
  delivering: 'busy',
  succeeded: 'good',
  failed: 'bad',
};
export const STATUSES = Object.keys(STATUS_TONES) as (keyof typeof STATUS_TONES)[];

export const REASON_TEXTS: Record<Reason, string> = {
  attempts_exhausted: 'Attempts exhausted',
  rejected: 'Rejected',
  unsafe_destination: 'Unsafe destination',
  run_expired: 'Run expired',
  endpoint_deleted: 'Endpoint removed',
};
export const REASONS = Object.keys(REASON_TEXTS) as Reason[];

const HOUR_MS = 3_600_000;
export const PERIODS = [
  { value: '1h', text: 'The last hour', ms: HOUR_MS },
  { value: '24h', text: 'The last 24 hours', ms: 24 * HOUR_MS },
  { value: '7d', text: 'The last 7 days', ms: 7 * 24 * HOUR_MS },
] as const;

type DeliveryFilter = InputOf<'listAllDeliveries'>;

/** An address may hold anything, so that only known values count. */
export function filterOf(parameters: URLSearchParams, nowMs: number): DeliveryFilter {
  const pick = <T extends string>(name: string, values: readonly T[]): T | undefined =>
    values.find((value) => value === parameters.get(name));
  const id = (name: string) => /^[A-Za-z0-9_-]{1,128}$/.exec(parameters.get(name) ?? '')?.[0];
  const given = parameters.get('period');
  const period = PERIODS.find(({ value }) => value === given);
  const time = (name: string) => (given === 'range' ? isoOf(parameters.get(name)) : undefined);
  const fields = {
    status: pick('status', STATUSES),
    eventType: pick('type', EVENT_TYPES),
    failureReason: pick('reason', REASONS),
    endpointId: id('endpoint'),
    roomId: id('room'),
    since: period === undefined ? time('from') : new Date(nowMs - period.ms).toISOString(),
    until: time('to'),
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as DeliveryFilter;
}

/** @param local value of a `datetime-local` field, in the zone of the reader */
export function isoOf(local: string | null): string | undefined {
  if (local === null || !/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?$/.test(local)) return undefined;
  const time = new Date(local);
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString();
}
