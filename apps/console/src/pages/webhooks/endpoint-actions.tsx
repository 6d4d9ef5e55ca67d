import type { WebhookEndpoint } from '@callplane/server/requests';
import { useState } from 'react';
import { useAskedAction } from '../../api/hooks.js';
import { Button } from '../../components/button.js';
import { navigate } from '../../navigation/location.js';
import { deliveryPath } from './deliveries.page.js';
import { EndpointForm } from './endpoint-form.js';
import { RotateSecret } from './rotate-secret.js';

export function EndpointActions({ endpoint }: { endpoint: WebhookEndpoint }) {
  const [isEditing, setEditing] = useState(false);
  const [isRotating, setRotating] = useState(false);
  const { id: endpointId, url, enabled } = endpoint;
  const test = useAskedAction('testWebhook', {
    done: 'A test event is on its way.',
    onDone: (delivery) => navigate(deliveryPath(endpointId, delivery.id)),
  });
  const update = useAskedAction('updateWebhook', {
    done: (changed) => (changed.enabled ? 'The endpoint is enabled.' : 'The endpoint is disabled.'),
  });
  const activate = useAskedAction('activateWebhookSecret', { done: 'The new secret signs new runs.' });
  const cancel = useAskedAction('cancelWebhookSecretRotation', { done: 'The rotation is cancelled.' });
  const remove = useAskedAction('deleteWebhook', {
    done: 'The endpoint has been removed.',
    onDone: () => navigate('/webhooks'),
  });
  return (
    <>
      {/* The API refuses a test of a disabled endpoint. */}
      {enabled && (
        <Button onClick={() => test.ask(testQuestion(endpoint), { endpointId })} isBusy={test.isPending}>
          Send a test
        </Button>
      )}
      <Button onClick={() => setEditing(true)}>Edit</Button>
      {endpoint.nextSigningKeyVersion === null ? (
        <Button onClick={() => setRotating(true)}>Rotate the secret</Button>
      ) : (
        <>
          <Button onClick={() => activate.ask(activateQuestion(endpoint), { endpointId })} isBusy={activate.isPending}>
            Activate the new secret
          </Button>
          <Button onClick={() => cancel.ask(cancelQuestion(endpoint), { endpointId })} isBusy={cancel.isPending}>
            Cancel the rotation
          </Button>
        </>
      )}
      <Button
        onClick={() =>
          update.ask(enabled ? disableQuestion(url) : enableQuestion(url), { endpointId, enabled: !enabled })
        }
        isBusy={update.isPending}
      >
        {enabled ? 'Disable' : 'Enable'}
      </Button>
      <Button kind="danger" onClick={() => remove.ask(removeQuestion(url), { endpointId })} isBusy={remove.isPending}>
        Remove
      </Button>
      {isEditing && <EndpointForm endpoint={endpoint} onClose={() => setEditing(false)} />}
      {isRotating && <RotateSecret endpoint={endpoint} onClose={() => setRotating(false)} />}
    </>
  );
}

const testQuestion = ({ url }: WebhookEndpoint) => ({
  title: 'Send a test event?',
  body: (
    <p>
      Callplane sends one <code>webhook.test</code> event to <strong>{url}</strong> only, whatever its event types are.
    </p>
  ),
  action: 'Send the test',
});

const disableQuestion = (url: string) => ({
  title: 'Disable the endpoint?',
  body: (
    <p>
      <strong>{url}</strong> gets no more requests. Its deliveries wait, and are sent when it is enabled again. A run
      that is 7 days old by then fails.
    </p>
  ),
  action: 'Disable the endpoint',
});

const enableQuestion = (url: string) => ({
  title: 'Enable the endpoint?',
  body: (
    <p>
      Callplane sends <strong>{url}</strong> all deliveries that have waited, beginning now.
    </p>
  ),
  action: 'Enable the endpoint',
});

const activateQuestion = ({ url, signingKeyVersion, nextSigningKeyVersion }: WebhookEndpoint) => ({
  title: 'Activate the new secret?',
  body: (
    <p>
      Runs of <strong>{url}</strong> that begin from now on are signed with version {nextSigningKeyVersion}. Runs that
      have begun keep version {signingKeyVersion}. Your receiver must know both.
    </p>
  ),
  action: 'Activate the secret',
});

const cancelQuestion = ({ url, signingKeyVersion, nextSigningKeyVersion }: WebhookEndpoint) => ({
  title: 'Cancel the rotation?',
  body: (
    <p>
      Version {nextSigningKeyVersion} will sign nothing. <strong>{url}</strong> keeps version {signingKeyVersion}.
    </p>
  ),
  action: 'Cancel the rotation',
});

const removeQuestion = (url: string) => ({
  title: 'Remove the endpoint?',
  body: (
    <p>
      <strong>{url}</strong> gets no more requests, and its open deliveries fail. This cannot be undone. Its deliveries
      stay readable for 30 days.
    </p>
  ),
  action: 'Remove the endpoint',
  isDangerous: true,
});
