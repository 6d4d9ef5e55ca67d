import type { WebhookDelivery, WebhookEndpoint } from '@callplane/server/requests';
import { useMemo } from 'react';
import { useApi, useApiList } from '../../api/hooks.js';
import { Button } from '../../components/button.js';
import { Page } from '../../components/layout.js';
import { ListTable, type Column } from '../../components/list-table.js';
import { Empty } from '../../components/states.js';
import { Time } from '../../components/text.js';
import { DeliveryFilters, useDeliveryFilter } from './delivery-filters.js';
import { deliveryPath, DeliveryReason, DeliveryStatus } from './delivery-status.js';

export default function DeliveriesPage() {
  return (
    <Page title="Deliveries" subtitle="Every event on its way to every endpoint, newest first.">
      <DeliveryList />
    </Page>
  );
}

/** Deliveries with their filters. */
export function DeliveryList({
  endpointId,
}: {
  /** Only those of this endpoint; all without it. */
  endpointId?: string;
}) {
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
        keyOf={({ id }) => id}
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

/** What the latest attempt got: a status or why there was none. */
function answerText({ lastStatusCode, lastErrorCode }: WebhookDelivery) {
  return lastStatusCode ?? lastErrorCode ?? <span className="quiet">–</span>;
}

/** The type, and in a narrow list the time below it, which has no column there. */
function EventCell({ eventType, createdAt }: WebhookDelivery) {
  return (
    <span className="event-cell">
      {eventType}
      <span className="quiet small event-time">
        <Time value={createdAt} />
      </span>
    </span>
  );
}

function useColumns(
  endpoints: readonly WebhookEndpoint[] | undefined,
  hasEndpoint: boolean,
): readonly Column<WebhookDelivery>[] {
  return useMemo(() => {
    const urls = new Map(endpoints?.map(({ id, url }) => [id, url]));
    const endpoint: Column<WebhookDelivery> = {
      title: 'Endpoint',
      width: '2fr',
      priority: 2,
      cell: ({ endpointId, url }) => <span title={endpointId}>{urls.get(endpointId) ?? url}</span>,
    };
    return [
      { title: 'Event', width: '2.4fr', cell: (delivery) => <EventCell {...delivery} /> },
      { title: 'Status', width: '7rem', cell: ({ status }) => <DeliveryStatus status={status} /> },
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
