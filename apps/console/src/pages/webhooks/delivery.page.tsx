import type { WebhookDeliveryDetail } from '@callplane/server/requests';
import { useApi } from '../../api/hooks.js';
import { Facts, LoadedPage, Page, Section } from '../../components/layout.js';
import { Code, Id, Json, Time } from '../../components/text.js';
import { Link } from '../../navigation/location.js';
import { useScope } from '../../session/session.js';
import { Attempts } from './attempt.js';
import { DeliveryActions } from './delivery-actions.js';
import { deliveryPath, DeliveryStatus } from './deliveries.page.js';
import { VerifyDelivery } from './verify-snippets.js';
import { REASON_TEXTS } from './vocabulary.js';

const UP = { to: '/deliveries', label: 'Deliveries' };

export default function DeliveryPage({ parameters }: { parameters: Record<string, string> }) {
  const input = { endpointId: parameters['endpointId'] ?? '', deliveryId: parameters['deliveryId'] ?? '' };
  return (
    <LoadedPage query={useApi('readDelivery', input)} title="Delivery" up={UP}>
      {(delivery) => <Delivery delivery={delivery} />}
    </LoadedPage>
  );
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
      <VerifyDelivery delivery={delivery} />
    </Page>
  );
}

function Diagnosis({ delivery }: { delivery: WebhookDeliveryDetail }) {
  const { status, diagnosis: final, lastAttempt, nextAttemptAt } = delivery;
  const diagnosis = final ?? (status === 'succeeded' ? null : lastAttempt?.diagnosis);
  if (diagnosis === null || diagnosis === undefined) return null;
  return (
    <div
      className={`notice below ${final === null ? 'warn' : 'bad'}`}
      role="note"
      aria-label={final === null ? 'Why the last attempt failed' : 'Why it failed'}
    >
      <strong>{diagnosis.summary}</strong>
      <p>{diagnosis.advice}</p>
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
    ['Room', roomId !== null && <Link to={`/rooms/${roomId}`}>{roomId}</Link>],
    ['Failure reason', failureReason !== null && REASON_TEXTS[failureReason]],
    ['Waits for', blockedBy !== null && <Link to={deliveryPath(delivery.endpointId, blockedBy)}>{blockedBy}</Link>],
    ['Attempts of this run', `${delivery.attempts} of 8`],
    ['Replays', delivery.replayCount],
    ['Next attempt', nextAttemptAt !== null && <Time value={nextAttemptAt} />],
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
