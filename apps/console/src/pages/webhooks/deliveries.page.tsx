import { EVENT_TYPES } from '@callplane/core/options';
import type { WebhookDelivery, WebhookEndpoint } from '@callplane/server/requests';
import { useMemo } from 'react';
import { useApi, useApiList } from '../../api/hooks.js';
import { Button } from '../../components/button.js';
import { Page } from '../../components/layout.js';
import { ListTable, type Column } from '../../components/list-table.js';
import { Empty } from '../../components/states.js';
import { Badge, Time } from '../../components/text.js';
import { REASON_TEXTS, STATUS_TONES, REASONS, STATUSES, filterOf, PERIODS } from './filter-of.js';
import { Filters, SelectFilter, TextFilter, TimeFilter, type Options } from '../../components/fields.js';
import { nowMs } from '../../moving-time.js';
import { useQueryParameters } from '../../navigation/location.js';

export default function DeliveriesPage() {
  return (
    <Page title="Deliveries" subtitle="Every event on its way to every endpoint, newest first.">
      <DeliveryList />
    </Page>
  );
}

/** @param props.endpointId restricts the list to this endpoint */
export function DeliveryList({ endpointId }: { endpointId?: string }) {
  const { filter, isFiltered, clear } = useDeliveryFilter();
  const list = useApiList('listAllDeliveries', {
    ...filter,
    ...(endpointId === undefined ? {} : { endpointId }),
  });
  const { data: endpoints } = useApi('listWebhooks', { limit: 100 }, { enabled: endpointId === undefined });
  const columns = useColumns(endpoints?.data, endpointId === undefined);
  return (
    <>
      <DeliveryFilters endpoints={endpointId === undefined ? (endpoints?.data ?? []) : undefined} />
      <ListTable
        label="Deliveries"
        list={list}
        columns={columns}
        to={(delivery) => deliveryPath(delivery.endpointId, delivery.id)}
        empty={
          isFiltered ? (
            <Empty icon="search" title="No delivery matches these filters.">
              <Button onClick={clear}>Remove the filters</Button>
            </Empty>
          ) : (
            <Empty icon="deliveries" title="Nothing has been delivered yet.">
              Each event becomes one delivery for each endpoint that wants its type. It appears here at once.
            </Empty>
          )
        }
      />
    </>
  );
}

function answerText({ lastStatusCode, lastErrorCode }: WebhookDelivery) {
  return lastStatusCode ?? lastErrorCode ?? <span className="quiet">–</span>;
}

/** An address without its scheme, so that more of it fits. */
const hostText = (url: string) => url.replace(/^https?:\/\//, '');

function useColumns(
  endpoints: readonly WebhookEndpoint[] | undefined,
  hasEndpoint: boolean,
): readonly Column<WebhookDelivery>[] {
  return useMemo(() => {
    const urls = new Map(endpoints?.map(({ id, url }) => [id, url]));
    const urlOf = ({ endpointId, url }: WebhookDelivery) => urls.get(endpointId) ?? url;
    const endpoint: Column<WebhookDelivery> = {
      title: 'Endpoint',
      width: '2fr',
      priority: 2,
      cell: (delivery) => <span title={delivery.endpointId}>{urlOf(delivery)}</span>,
    };
    return [
      {
        title: 'Event',
        width: '2.4fr',
        // In a narrow list, answer, endpoint and time have no columns and stand in second lines.
        cell: (delivery) => (
          <span className="two-lines">
            <span className="cut">{delivery.eventType}</span>
            <span className="quiet small cut narrow-only">
              {answerText(delivery)}
              {hasEndpoint && <> · {hostText(urlOf(delivery))}</>}
            </span>
          </span>
        ),
      },
      {
        title: 'Status',
        width: '7rem',
        cell: ({ status, createdAt }) => (
          <span className="two-lines">
            <span>
              <DeliveryStatus status={status} />
            </span>
            <span className="quiet small narrow-only">
              <Time value={createdAt} />
            </span>
          </span>
        ),
      },
      { title: 'Answer', width: '6.5rem', priority: 2, cell: answerText },
      { title: 'Reason', width: '1.2fr', priority: 3, cell: (delivery) => <DeliveryReason {...delivery} /> },
      ...(hasEndpoint ? [endpoint] : []),
      { title: 'Attempts', width: '5.5rem', priority: 3, align: 'end', cell: ({ attempts }) => attempts },
      {
        title: 'Next attempt',
        width: '7.5rem',
        priority: 3,
        cell: ({ nextAttemptAt }) => <Time value={nextAttemptAt} />,
      },
      { title: 'Created', width: '7.5rem', priority: 2, cell: ({ createdAt }) => <Time value={createdAt} /> },
    ];
  }, [endpoints, hasEndpoint]);
}

export function deliveryPath(endpointId: string, deliveryId: string): string {
  return `/webhooks/${endpointId}/deliveries/${deliveryId}`;
}

export function DeliveryStatus({ status }: Pick<WebhookDelivery, 'status'>) {
  return <Badge tone={STATUS_TONES[status]}>{status}</Badge>;
}

function DeliveryReason({ failureReason, blockedBy, attempts, status }: WebhookDelivery) {
  if (failureReason !== null) return REASON_TEXTS[failureReason];
  if (blockedBy !== null) return <span className="quiet">waits for an earlier one</span>;
  if (status === 'pending' && attempts > 0) return <span className="quiet">waits for a retry</span>;
  return <span className="quiet">–</span>;
}

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

function useDeliveryFilter() {
  const [parameters, change] = useQueryParameters();
  // A period begins when it is chosen: the list must not move under its reader.
  const filter = useMemo(() => filterOf(parameters, nowMs()), [parameters]);
  return { filter, isFiltered: Object.keys(filter).length > 0, clear: () => change(PARAMETERS) };
}

/** @param props.endpoints to choose from; none on the page of one endpoint */
function DeliveryFilters({ endpoints }: { endpoints: readonly WebhookEndpoint[] | undefined }) {
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
