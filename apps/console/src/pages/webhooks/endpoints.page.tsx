import type { WebhookEndpoint } from '@callplane/server/requests';
import { useMemo, useState } from 'react';
import { useApiList, useApi } from '../../api/hooks.js';
import { Button } from '../../components/button.js';
import { Page } from '../../components/layout.js';
import { ListTable, type Column } from '../../components/list-table.js';
import { Empty } from '../../components/states.js';
import { Time, Badge } from '../../components/text.js';
import { useScope } from '../../session/session.js';
import { EndpointForm } from './endpoint-form.js';
import { countText, shareText } from '../../format.js';

const columnsWith = (rates: FailureRates): readonly Column<WebhookEndpoint>[] => [
  { title: 'URL', width: '3fr', cell: ({ url }) => <span className="url-cell">{url}</span> },
  { title: 'Status', width: '6.5rem', cell: (endpoint) => <EndpointStatus endpoint={endpoint} /> },
  { title: 'Failures since', width: '7.5rem', priority: 2, cell: ({ failingSince }) => <Time value={failingSince} /> },
  { title: 'Failed, last hour', width: '8rem', priority: 2, cell: ({ id }) => rates.get(id) ?? '–' },
  { title: 'Description', width: '2fr', priority: 2, cell: ({ description }) => description ?? '–' },
  { title: 'Events', width: '11rem', priority: 3, cell: ({ events }) => eventsText(events) },
  { title: 'Order and limits', width: '13rem', priority: 3, cell: sendingText },
];

export default function EndpointsPage() {
  const [isCreating, setCreating] = useState(false);
  const mayWrite = useScope('webhooks:write');
  const list = useApiList('listWebhooks', {});
  const rates = useFailureRates();
  const columns = useMemo(() => columnsWith(rates), [rates]);
  return (
    <Page
      title="Webhooks"
      subtitle="The endpoints that receive the events of this environment."
      actions={
        mayWrite && (
          <Button kind="primary" onClick={() => setCreating(true)}>
            Add an endpoint
          </Button>
        )
      }
    >
      <ListTable
        label="Endpoints"
        list={list}
        columns={columns}
        to={({ id }) => `/webhooks/${id}`}
        empty={
          <Empty icon="webhooks" title="This environment has no endpoints yet.">
            An endpoint is a URL of your backend. Callplane sends it every event as a signed request.
          </Empty>
        }
      />
      {isCreating && <EndpointForm onClose={() => setCreating(false)} />}
    </Page>
  );
}

export function EndpointStatus({ endpoint: { id, enabled, disabledReason } }: { endpoint: WebhookEndpoint }) {
  const { data } = useApi('readOverview', {});
  const isFailing = data?.webhooks?.failingEndpoints.some(({ endpointId }) => endpointId === id) ?? false;
  if (enabled && isFailing) return <Badge tone="warn">failing</Badge>;
  if (enabled) return <Badge tone="good">enabled</Badge>;
  return <Badge tone={disabledReason === null ? 'quiet' : 'bad'}>disabled</Badge>;
}

export function eventsText(events: WebhookEndpoint['events']): string {
  if (events.includes('*')) return 'All events';
  return events.length <= 2 ? events.join(', ') : `${events.length} event types`;
}

function sendingText({ ordering, maxPerSecond, maxConcurrent }: WebhookEndpoint): string {
  const parts = [
    ...(ordering === 'room' ? ['in order of rooms'] : []),
    ...(maxPerSecond === null ? [] : [`${maxPerSecond} a second`]),
    ...(maxConcurrent === null ? [] : [`${maxConcurrent} at once`]),
  ];
  return parts.length === 0 ? 'No order, no limits' : parts.join(', ');
}

/** By endpoint id, in words: the share of deliveries of the last hour that failed at their latest attempt. */
export type FailureRates = ReadonlyMap<string, string>;

export function useFailureRates(): FailureRates {
  const { data } = useApi('readOverview', {});
  const rates = data?.webhooks?.failureRates;
  return useMemo(
    () =>
      new Map(
        rates?.map(({ endpointId, tried, failed }) => [
          endpointId,
          `${shareText(failed / tried)} of ${countText(tried)}`,
        ]),
      ),
    [rates],
  );
}
