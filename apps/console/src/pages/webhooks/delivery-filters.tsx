import type { WebhookEndpoint } from '@callplane/server/requests';
import { useId, useMemo } from 'react';
import { Filters, SelectFilter, TextFilter } from '../../components/fields.js';
import { useMovingTime } from '../../moving-time.js';
import { useQueryParameters } from '../../navigation/location.js';
import { filterOf, PERIODS, stepOf, type DeliveryFilter } from './filter-of.js';
import { EVENT_TEXTS, REASONS, REASON_TEXTS, STATUSES } from './vocabulary.js';

const PERIOD_OPTIONS = [
  ['', 'Any'],
  ...Object.entries(PERIODS).map(([value, [text]]) => [value, text] as const),
  ['range', 'From … to …'],
] as const;

const PARAMETERS = { status: '', type: '', reason: '', endpoint: '', room: '', period: '', from: '', to: '' };

/** The filters of a list of deliveries, kept in the address. */
export function useDeliveryFilter(): { filter: DeliveryFilter; isFiltered: boolean; clear: () => void } {
  const [parameters, change] = useQueryParameters();
  // The list must not jump back to its beginning under a reader who has scrolled.
  const timeMs = useMovingTime(stepOf(parameters), () => window.scrollY > 0);
  const filter = useMemo(() => filterOf(parameters, timeMs), [parameters, timeMs]);
  return { filter, isFiltered: Object.keys(filter).length > 0, clear: () => change(PARAMETERS) };
}

/** @param props.endpoints to choose from; none on the page of one endpoint */
export function DeliveryFilters({ endpoints }: { endpoints: readonly WebhookEndpoint[] | undefined }) {
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
      {endpoints !== undefined && (
        <SelectFilter
          label="Endpoint"
          value={value('endpoint')}
          options={[['', 'All'], ...endpoints.map(({ id, url }) => [id, url] as const)]}
          onChange={(endpoint) => change({ endpoint })}
        />
      )}
      <TextFilter
        label="Room"
        value={value('room')}
        placeholder="room_…"
        onChange={(room) => change({ room: room.trim() })}
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
