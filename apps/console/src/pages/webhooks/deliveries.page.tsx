import type { WebhookDelivery, WebhookEndpoint } from '@callplane/server/requests';
import { useMemo } from 'react';
import { useApi, useApiList } from '../../api/hooks.js';
import { Button } from '../../components/button.js';
import { Page } from '../../components/layout.js';
import { ListTable, type Column } from '../../components/list-table.js';
import { Empty } from '../../components/states.js';
import { Badge, Time } from '../../components/text.js';
import { DeliveryFilters, useDeliveryFilter } from './delivery-filters.js';
import { REASON_TEXTS, STATUS_TONES } from './vocabulary.js';

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
