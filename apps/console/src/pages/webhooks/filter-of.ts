import type { InputOf } from '@callplane/server/requests';
import { EVENT_TEXTS, REASONS, STATUSES } from './vocabulary.js';

const HOUR_MS = 3_600_000;
export const PERIODS = {
  '1h': ['The last hour', HOUR_MS],
  '24h': ['The last 24 hours', 24 * HOUR_MS],
  '7d': ['The last 7 days', 7 * 24 * HOUR_MS],
} as const;
type Period = keyof typeof PERIODS;
const MINUTE_MS = 60_000;
/** A period begins at a whole step, of which it has at most 60. */
const STEPS = 60;

/** @returns how far the beginning of the chosen period moves at once, in milliseconds */
export function stepOf(parameters: URLSearchParams): number {
  const period = parameters.get('period') ?? '';
  if (!Object.hasOwn(PERIODS, period)) return MINUTE_MS;
  return Math.max(MINUTE_MS, PERIODS[period as Period][1] / STEPS);
}

export type DeliveryFilter = Pick<
  InputOf<'listAllDeliveries'>,
  'status' | 'eventType' | 'failureReason' | 'endpointId' | 'roomId' | 'since' | 'until'
>;
/** An address may hold anything, so that only known values count. */
export function filterOf(parameters: URLSearchParams, nowMs: number): DeliveryFilter {
  const pick = <T extends string>(name: string, values: readonly T[]): T | undefined =>
    values.find((value) => value === parameters.get(name));
  const status = pick('status', STATUSES);
  const eventType = pick(
    'type',
    EVENT_TEXTS.map(([type]) => type),
  );
  const failureReason = pick('reason', REASONS);
  const endpointId = idIn(parameters, 'endpoint');
  const roomId = idIn(parameters, 'room');
  return {
    ...(status === undefined ? {} : { status }),
    ...(eventType === undefined ? {} : { eventType }),
    ...(failureReason === undefined ? {} : { failureReason }),
    ...(endpointId === undefined ? {} : { endpointId }),
    ...(roomId === undefined ? {} : { roomId }),
    ...timesOf(parameters, nowMs),
  };
}

function idIn(parameters: URLSearchParams, name: string): string | undefined {
  const id = parameters.get(name) ?? '';
  return /^[A-Za-z0-9_-]{1,128}$/.test(id) ? id : undefined;
}

function timesOf(parameters: URLSearchParams, nowMs: number): Pick<DeliveryFilter, 'since' | 'until'> {
  const period = parameters.get('period') ?? '';
  if (Object.hasOwn(PERIODS, period)) {
    return { since: new Date(nowMs - PERIODS[period as Period][1]).toISOString() };
  }
  if (period !== 'range') return {};
  const since = isoOf(parameters.get('from'));
  const until = isoOf(parameters.get('to'));
  return { ...(since === undefined ? {} : { since }), ...(until === undefined ? {} : { until }) };
}

/** @param local value of a `datetime-local` field, in the zone of the reader */
export function isoOf(local: string | null): string | undefined {
  if (local === null || !/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?$/.test(local)) return undefined;
  const time = new Date(local);
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString();
}
