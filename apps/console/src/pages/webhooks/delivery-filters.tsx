import type { InputOf } from '@callplane/server/requests';
import { useId, useMemo } from 'react';
import { nowMs } from '../../clock.js';
import { Filters, SelectFilter } from '../../components/fields.js';
import { useQueryParameters } from '../../navigation/location.js';
import { EVENT_TEXTS, REASONS, REASON_TEXTS, STATUSES } from './vocabulary.js';

const HOUR_MS = 3_600_000;
const PERIODS = {
  '1h': ['The last hour', HOUR_MS],
  '24h': ['The last 24 hours', 24 * HOUR_MS],
  '7d': ['The last 7 days', 7 * 24 * HOUR_MS],
} as const;
type Period = keyof typeof PERIODS;
const PERIOD_OPTIONS = [
  ['', 'Any'],
  ...Object.entries(PERIODS).map(([value, [text]]) => [value, text] as const),
  ['range', 'From … to …'],
] as const;

export type DeliveryFilter = Pick<
  InputOf<'listAllDeliveries'>,
  'status' | 'eventType' | 'failureReason' | 'since' | 'until'
>;
const PARAMETERS = { status: '', type: '', reason: '', period: '', from: '', to: '' };

/** The filters of a list of deliveries, kept in the address. */
export function useDeliveryFilter(): { filter: DeliveryFilter; isFiltered: boolean; clear: () => void } {
  const [parameters, change] = useQueryParameters();
  const filter = useMemo(() => filterOf(parameters, nowMs()), [parameters]);
  return { filter, isFiltered: Object.keys(filter).length > 0, clear: () => change(PARAMETERS) };
}

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
  return {
    ...(status === undefined ? {} : { status }),
    ...(eventType === undefined ? {} : { eventType }),
    ...(failureReason === undefined ? {} : { failureReason }),
    ...timesOf(parameters, nowMs),
  };
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

export function DeliveryFilters() {
  const [parameters, change] = useQueryParameters();
  const value = (name: string) => parameters.get(name) ?? '';
  return (
    <Filters>
      <SelectFilter
        label="Status"
        value={value('status')}
        options={[['', 'All'], ...STATUSES.map((status) => [status, status] as const)]}
        // Only failed deliveries have a reason.
        onChange={(status) => change({ status, ...(status === 'failed' || status === '' ? {} : { reason: '' }) })}
      />
      <SelectFilter
        label="Event"
        value={value('type')}
        options={[['', 'All'], ...EVENT_TEXTS.map(([type]) => [type, type] as const)]}
        onChange={(type) => change({ type })}
      />
      <SelectFilter
        label="Failure reason"
        value={value('reason')}
        options={[['', 'All'], ...REASONS.map((reason) => [reason, REASON_TEXTS[reason]] as const)]}
        onChange={(reason) => change({ reason, ...(reason === '' ? {} : { status: 'failed' }) })}
      />
      <SelectFilter
        label="Created"
        value={value('period')}
        options={PERIOD_OPTIONS}
        onChange={(period) => change({ period, ...(period === 'range' ? {} : { from: '', to: '' }) })}
      />
      {value('period') === 'range' && (
        <>
          <TimeFilter label="From" value={value('from')} onChange={(from) => change({ from })} />
          <TimeFilter label="To" value={value('to')} onChange={(to) => change({ to })} />
        </>
      )}
    </Filters>
  );
}

function TimeFilter({ label, value, onChange }: { label: string; value: string; onChange: (value: string) => void }) {
  const id = useId();
  return (
    <div className="filter">
      <label htmlFor={id}>{label}</label>
      <input id={id} type="datetime-local" value={value} onChange={(event) => onChange(event.target.value)} />
    </div>
  );
}
