import { ENDPOINT_OPTIONS } from '@callplane/core/options';
import type { WebhookEndpoint } from '@callplane/server/requests';
import { useApi } from '../../api/hooks.js';
import { Facts, LoadedPage, Page } from '../../components/layout.js';
import { optionFacts } from '../../components/options.js';
import { Tabs } from '../../components/tabs.js';
import { Id, Time } from '../../components/text.js';
import { useScope } from '../../session/session.js';
import { DeliveryList } from './deliveries.page.js';
import { EndpointActions } from './endpoint-actions.js';
import { EndpointStats } from './endpoint-stats.js';
import { EndpointStatus, eventsText, useFailureRates } from './endpoints.page.js';
import { Recoveries } from './recoveries.js';
import { TryFilter } from './try-filter.js';
import { VerifySnippets } from './verify-snippets.js';

const UP = { to: '/webhooks', label: 'Webhooks' };

export default function EndpointPage({ parameters }: { parameters: Record<string, string> }) {
  const endpointId = parameters['endpointId'] ?? '';
  return (
    <LoadedPage query={useApi('readWebhook', { endpointId })} title="Endpoint" up={UP}>
      {(endpoint) => <Endpoint endpoint={endpoint} />}
    </LoadedPage>
  );
}

function Endpoint({ endpoint }: { endpoint: WebhookEndpoint }) {
  const mayWrite = useScope('webhooks:write');
  const rates = useFailureRates();
  return (
    <Page
      title={endpoint.url}
      up={UP}
      badge={<EndpointStatus endpoint={endpoint} />}
      subtitle={endpoint.description ?? undefined}
    >
      {mayWrite && (
        <div className="row below" role="group" aria-label="Actions">
          <EndpointActions endpoint={endpoint} />
        </div>
      )}
      {endpoint.disabledReason !== null && (
        <p className="notice bad below">
          Callplane disabled this endpoint: {endpoint.disabledReason} Its deliveries wait.
        </p>
      )}
      <div className="card below">
        <Facts facts={factsOf(endpoint, rates.get(endpoint.id))} />
      </div>
      <Tabs
        label="Parts of the endpoint"
        tabs={[
          { name: 'deliveries', label: 'Deliveries', content: () => <DeliveryList endpointId={endpoint.id} /> },
          { name: 'statistics', label: 'Statistics', content: () => <EndpointStats endpointId={endpoint.id} /> },
          { name: 'recoveries', label: 'Recoveries', content: () => <Recoveries endpoint={endpoint} /> },
          { name: 'filter', label: 'Filter', content: () => <TryFilter endpoint={endpoint} /> },
          { name: 'verify', label: 'Verify', content: () => <VerifySnippets version={endpoint.signingKeyVersion} /> },
        ]}
      />
    </Page>
  );
}

function factsOf(endpoint: WebhookEndpoint, failureRate: string | undefined) {
  const { events } = endpoint;
  return [
    ['Identifier', <Id value={endpoint.id} />],
    ['Failures since', <Time value={endpoint.failingSince} full />],
    ['Failed in the last hour', failureRate ?? 'Nothing was tried'],
    ['Events', events.length > 2 ? <span title={events.join(', ')}>{eventsText(events)}</span> : eventsText(events)],
    ...optionFacts(ENDPOINT_OPTIONS, endpoint),
    ['Signing secret', <SigningSecret {...endpoint} />],
    ['Created', <Time value={endpoint.createdAt} />],
    ['Changed', <Time value={endpoint.updatedAt} />],
  ] as const;
}

function SigningSecret({ signingKeyVersion, nextSigningKeyVersion, nextActivatesAt }: WebhookEndpoint) {
  if (nextActivatesAt === null) return `Version ${signingKeyVersion}`;
  return (
    <>
      Version {signingKeyVersion}; version {nextSigningKeyVersion} signs from <Time value={nextActivatesAt} full /> on
    </>
  );
}
