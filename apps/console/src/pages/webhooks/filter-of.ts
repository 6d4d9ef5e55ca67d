import { EVENT_TYPES } from '@callplane/core/options';
import type { InputOf, WebhookDelivery } from '@callplane/server/requests';
import type { Tone } from '../../components/text.js';

type Reason = NonNullable<WebhookDelivery['failureReason']>;

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
