import type { WebhookDeliveryDetail } from '@callplane/server/requests';
import { useApi } from '../../api/hooks.js';
import { shownAnswer } from '../../api/api-error.js';
import { Facts, Page, Section } from '../../components/layout.js';
import { Loaded } from '../../components/states.js';
import { Code, Id, Json, Time } from '../../components/text.js';
import { Link } from '../../navigation/location.js';
import type { PathParameters } from '../../navigation/match.js';
import { useScope } from '../../session/session.js';
import { Attempts } from './attempt.js';
import { DeliveryActions } from './delivery-actions.js';
import { DeliveryStatus } from './delivery-status.js';
import { VerifyDelivery } from './verify-snippets.js';
import { REASON_TEXTS } from './vocabulary.js';

const UP = { to: '/deliveries', label: 'Deliveries' };

export default function DeliveryPage({ parameters }: { parameters: PathParameters }) {
  const input = { endpointId: parameters['endpointId'] ?? '', deliveryId: parameters['deliveryId'] ?? '' };
  const query = useApi('readDelivery', input);
  const delivery = shownAnswer(query);
  if (delivery === undefined) {
    return (
      <Page title="Delivery" up={UP}>
        <Loaded query={query} what="the delivery">
          {() => null}
        </Loaded>
      </Page>
    );
  }
  return <Delivery delivery={delivery} />;
}

function Delivery({ delivery }: { delivery: WebhookDeliveryDetail }) {
  const { endpointId } = delivery;
  const mayWrite = useScope('webhooks:write');
  const { data: endpoint } = useApi('readWebhook', { endpointId });
  return (
    <Page
      title={delivery.eventType}
      up={UP}
      badge={<DeliveryStatus status={delivery.status} />}
      subtitle={
        <>
          to <Link to={`/webhooks/${endpointId}`}>{delivery.url}</Link>
        </>
      }
      actions={mayWrite && <DeliveryActions delivery={delivery} endpoint={endpoint} />}
    >
      <Diagnosis delivery={delivery} />
      <div className="card below">
        <Facts facts={factsOf(delivery)} />
      </div>
      <Section title="Attempts">
        <Attempts delivery={delivery} />
      </Section>
      <Section title="Body">
        <Body delivery={delivery} />
      </Section>
      <Section title="Verify">
        <VerifyDelivery delivery={delivery} />
      </Section>
    </Page>
  );
}

/** Why the delivery failed, or why its last attempt did, and what to do. */
function Diagnosis({ delivery }: { delivery: WebhookDeliveryDetail }) {
  const { status, diagnosis, lastAttempt, nextAttemptAt } = delivery;
  if (diagnosis !== null) {
    return (
      <div className="notice bad below" role="note" aria-label="Why it failed">
        <p className="diagnosis-summary">{diagnosis.summary}</p>
        <p>{diagnosis.advice}</p>
      </div>
    );
  }
  const latest = status === 'succeeded' ? null : (lastAttempt?.diagnosis ?? null);
  if (latest === null) return null;
  return (
    <div className="notice warn below" role="note" aria-label="Why the last attempt failed">
      <p className="diagnosis-summary">{latest.summary}</p>
      <p>{latest.advice}</p>
      {nextAttemptAt !== null && (
        <p>
          Next attempt: <Time value={nextAttemptAt} />
        </p>
      )}
    </div>
  );
}

function factsOf(delivery: WebhookDeliveryDetail) {
  const { failureReason, blockedBy, nextAttemptAt, roomId } = delivery;
  return [
    ['Delivery', <Id value={delivery.id} />],
    ['Event', <Id value={delivery.eventId} />],
    ...(roomId === null ? [] : ([['Room', <Link to={`/rooms/${roomId}`}>{roomId}</Link>]] as const)),
    ...(failureReason === null ? [] : ([['Failure reason', REASON_TEXTS[failureReason]]] as const)),
    ...(blockedBy === null
      ? []
      : ([
          ['Waits for', <Link to={`/webhooks/${delivery.endpointId}/deliveries/${blockedBy}`}>{blockedBy}</Link>],
        ] as const)),
    ['Attempts of this run', `${delivery.attempts} of 8`],
    ['Replays', delivery.replayCount],
    ...(nextAttemptAt === null ? [] : ([['Next attempt', <Time value={nextAttemptAt} />]] as const)),
    ['Signed with', `Secret version ${delivery.signingKeyVersion}`],
    ['Created', <Time value={delivery.createdAt} full />],
    ['Completed', <Time value={delivery.completedAt} full />],
  ] as const;
}

function Body({ delivery: { body, event } }: { delivery: WebhookDeliveryDetail }) {
  return (
    <div className="stack">
      <Json value={event} label="Event, indented" />
      <details>
        <summary>The exact bytes that are sent and signed ({new TextEncoder().encode(body).length} bytes)</summary>
        <Code text={body} label="Exact body" wrap />
      </details>
    </div>
  );
}
