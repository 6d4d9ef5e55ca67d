import type { WebhookDeliveryDetail, WebhookEndpoint } from '@callplane/server/requests';
import { useAskedAction } from '../../api/hooks.js';
import { Button } from '../../components/button.js';

export function DeliveryActions({
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
