import type { WebhookEndpoint } from '@callplane/server/requests';
import { useState } from 'react';
import { useApiList } from '../../api/hooks.js';
import { Button } from '../../components/button.js';
import { Page } from '../../components/layout.js';
import { ListTable, type Column } from '../../components/list-table.js';
import { Empty } from '../../components/states.js';
import { Time } from '../../components/text.js';
import { useScope } from '../../session/session.js';
import { CreateEndpoint } from './create-endpoint.js';
import { EndpointStatus, eventsText, sendingText } from './endpoint-status.js';

const COLUMNS: readonly Column<WebhookEndpoint>[] = [
  { title: 'URL', width: '3fr', cell: ({ url }) => <span className="url-cell">{url}</span> },
  { title: 'Status', width: '6.5rem', cell: (endpoint) => <EndpointStatus {...endpoint} /> },
  { title: 'Description', width: '2fr', priority: 3, cell: ({ description }) => description ?? '–' },
  { title: 'Events', width: '11rem', priority: 2, cell: ({ events }) => eventsText(events) },
  { title: 'Order and limits', width: '13rem', priority: 3, cell: sendingText },
  { title: 'Created', width: '7.5rem', priority: 2, cell: ({ createdAt }) => <Time value={createdAt} /> },
];

export default function EndpointsPage() {
  const [isCreating, setCreating] = useState(false);
  const mayWrite = useScope('webhooks:write');
  const list = useApiList('listWebhooks', {});
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
        columns={COLUMNS}
        keyOf={({ id }) => id}
        to={({ id }) => `/webhooks/${id}`}
        empty={
          <Empty icon="webhooks" title="This environment has no endpoints yet.">
            An endpoint is a URL of your backend. Callplane sends it every event as a signed request.
          </Empty>
        }
      />
      {isCreating && <CreateEndpoint onClose={() => setCreating(false)} />}
    </Page>
  );
}
