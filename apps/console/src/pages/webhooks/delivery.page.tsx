import type { WebhookDeliveryDetail, WebhookEndpoint } from '@callplane/server/requests';
import { useApi, useAskedAction } from '../../api/hooks.js';
import { Facts, LoadedPage, Page, Section } from '../../components/layout.js';
import { Code, Id, Json, Time } from '../../components/text.js';
import { Link } from '../../navigation/location.js';
import { useScope } from '../../session/session.js';
import { Attempts } from './attempt.js';
import { deliveryPath, DeliveryStatus } from './deliveries.page.js';
import { VerifyDelivery } from './verify-snippets.js';
import { REASON_TEXTS } from './filter-of.js';
import { Button } from '../../components/button.js';

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

function DeliveryActions({
  delivery,
  endpoint,
}: {
  delivery: WebhookDeliveryDetail;
  /** Undefined while it is read, and after its removal. */
  endpoint: WebhookEndpoint | undefined;
}) {
  const { id: deliveryId, endpointId, status, replayCount } = delivery;
  const retrying = useAskedAction('retryDelivery', { done: 'The next attempt is due now.' });
  const replaying = useAskedAction('replayDelivery', { done: 'A new run has begun.' });
  if (endpoint === undefined) return null;
  // The API refuses both.
  if (!endpoint.enabled)
    return <p className="quiet">The endpoint is disabled. Enable it to send the delivery again.</p>;
  if (status === 'pending') {
    const retry = () => retrying.ask(retryQuestion(delivery), { endpointId, deliveryId });
    return (
      <Button kind="primary" isBusy={retrying.isPending} onClick={retry}>
        Retry now
      </Button>
    );
  }
  if (status === 'delivering') return null;
  const replay = () =>
    replaying.ask(replayQuestion(delivery, endpoint), { endpointId, deliveryId, expectedReplayCount: replayCount });
  return (
    <Button kind="primary" isBusy={replaying.isPending} onClick={replay}>
      Replay
    </Button>
  );
}

const retryQuestion = ({ url, attempts, blockedBy }: WebhookDeliveryDetail) => ({
  title: 'Retry the delivery now?',
  body: (
    <>
      <p>
        Callplane sends the same bytes to <strong>{url}</strong> now instead of later. It is attempt {attempts + 1} of
        8.
      </p>
      {blockedBy !== null && (
        <p>The delivery waits for an earlier one of its room, so it follows only after that one has ended.</p>
      )}
    </>
  ),
  action: 'Retry now',
});

const replayQuestion = ({ status, replayCount, eventType }: WebhookDeliveryDetail, endpoint: WebhookEndpoint) => ({
  title: 'Replay the delivery?',
  body: (
    <>
      <p>
        Callplane begins a new run of up to 8 attempts: the same <code>{eventType}</code> event, to{' '}
        <strong>{endpoint.url}</strong>, signed with secret version {endpoint.signingKeyVersion}. It is replay{' '}
        {replayCount + 1} of 100.
      </p>
      {status === 'succeeded' && (
        <p>
          The receiver has accepted this event before. It gets the same event id again, and skips it if it remembers the
          ids that it has processed.
        </p>
      )}
    </>
  ),
  action: 'Replay the delivery',
});
