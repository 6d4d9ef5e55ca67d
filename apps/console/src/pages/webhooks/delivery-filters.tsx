import type { WebhookEndpoint } from '@callplane/server/requests';
import { useMemo } from 'react';
import { Filters, SelectFilter, TextFilter, TimeFilter, type Options } from '../../components/fields.js';
import { nowMs } from '../../moving-time.js';
import { useQueryParameters } from '../../navigation/location.js';
import { filterOf, PERIODS } from './filter-of.js';
import { EVENT_TYPES, REASONS, REASON_TEXTS, STATUSES } from './vocabulary.js';

const allOr = (values: Options): Options => [['', 'All'], ...values];
const STATUS_OPTIONS = allOr(STATUSES.map((status) => [status, status]));
const EVENT_OPTIONS = allOr(EVENT_TYPES.map((type) => [type, type]));
const REASON_OPTIONS = allOr(REASONS.map((reason) => [reason, REASON_TEXTS[reason]]));
const PERIOD_OPTIONS: Options = [
  ['', 'Any'],
  ...PERIODS.map(({ value, text }) => [value, text] as const),
  ['range', 'From … to …'],
];
const PARAMETERS = { status: '', type: '', reason: '', endpoint: '', room: '', period: '', from: '', to: '' };

export function useDeliveryFilter() {
  const [parameters, change] = useQueryParameters();
  // A period begins when it is chosen: the list must not move under its reader.
  const filter = useMemo(() => filterOf(parameters, nowMs()), [parameters]);
  return { filter, isFiltered: Object.keys(filter).length > 0, clear: () => change(PARAMETERS) };
}

/** @param props.endpoints to choose from; none on the page of one endpoint */
export function DeliveryFilters({ endpoints }: { endpoints: readonly WebhookEndpoint[] | undefined }) {
  const [parameters] = useQueryParameters();
  return (
    <Filters>
      <SelectFilter
        label="Status"
        name="status"
        options={STATUS_OPTIONS}
        // Only failed deliveries have a reason.
        also={(status): Record<string, string> => (status === 'failed' || status === '' ? {} : { reason: '' })}
      />
      <SelectFilter label="Event" name="type" options={EVENT_OPTIONS} />
      <SelectFilter
        label="Failure reason"
        name="reason"
        options={REASON_OPTIONS}
        also={(reason): Record<string, string> => (reason === '' ? {} : { status: 'failed' })}
      />
      {endpoints !== undefined && (
        <SelectFilter label="Endpoint" name="endpoint" options={allOr(endpoints.map(({ id, url }) => [id, url]))} />
      )}
      <TextFilter label="Room" name="room" placeholder="room_…" />
      <SelectFilter
        label="Created"
        name="period"
        options={PERIOD_OPTIONS}
        also={(period): Record<string, string> => (period === 'range' ? {} : { from: '', to: '' })}
      />
      {parameters.get('period') === 'range' && (
        <>
          <TimeFilter label="From" name="from" />
          <TimeFilter label="To" name="to" />
        </>
      )}
    </Filters>
  );
}
