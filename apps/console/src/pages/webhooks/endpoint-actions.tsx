import type { WebhookEndpoint } from '@callplane/server/requests';
import { useState } from 'react';
import { useApiAction } from '../../api/hooks.js';
import { Button } from '../../components/button.js';
import { Dialog, useConfirm } from '../../components/dialog.js';
import { navigate } from '../../navigation/location.js';
import { EndpointForm } from './endpoint-form.js';
import { RotateSecret } from './rotate-secret.js';

/** The actions of an endpoint. Each says before what will happen. */
export function EndpointActions({ endpoint }: { endpoint: WebhookEndpoint }) {
  const [isEditing, setEditing] = useState(false);
  const [isRotating, setRotating] = useState(false);
  const actions = useActions(endpoint);
  return (
    <>
      {/* The API refuses a test of a disabled endpoint. */}
      {endpoint.enabled && (
        <Button onClick={actions.test} isBusy={actions.isTesting}>
          Send a test
        </Button>
      )}
      <Button onClick={() => setEditing(true)}>Edit</Button>
      {endpoint.nextSigningKeyVersion === null ? (
        <Button onClick={() => setRotating(true)}>Rotate the secret</Button>
      ) : (
        <>
          <Button onClick={actions.activate} isBusy={actions.isActivating}>
            Activate the new secret
          </Button>
          <Button onClick={actions.cancelRotation} isBusy={actions.isCancelling}>
            Cancel the rotation
          </Button>
        </>
      )}
      <Button onClick={actions.toggle} isBusy={actions.isUpdating}>
        {endpoint.enabled ? 'Disable' : 'Enable'}
      </Button>
      <Button kind="danger" onClick={actions.remove} isBusy={actions.isRemoving}>
        Remove
      </Button>
      {isEditing && <EditEndpoint endpoint={endpoint} onClose={() => setEditing(false)} />}
      {isRotating && <RotateSecret endpoint={endpoint} onClose={() => setRotating(false)} />}
    </>
  );
}

function useActions(endpoint: WebhookEndpoint) {
  const confirm = useConfirm();
  const { id: endpointId, url, enabled } = endpoint;
  const testing = useApiAction('testWebhook', {
    done: 'A test event is on its way.',
    onDone: (delivery) => navigate(`/webhooks/${endpointId}/deliveries/${delivery.id}`),
  });
  const updating = useApiAction('updateWebhook', {
    done: (changed) => (changed.enabled ? 'The endpoint is enabled.' : 'The endpoint is disabled.'),
  });
  const activating = useApiAction('activateWebhookSecret', { done: 'The new secret signs new runs.' });
  const cancelling = useApiAction('cancelWebhookSecretRotation', { done: 'The rotation is cancelled.' });
  const removing = useApiAction('deleteWebhook', {
    done: 'The endpoint has been removed.',
    onDone: () => navigate('/webhooks'),
  });
  return {
    isTesting: testing.isPending,
    isUpdating: updating.isPending,
    isActivating: activating.isPending,
    isCancelling: cancelling.isPending,
    isRemoving: removing.isPending,
    test: () => void confirm(testQuestion(endpoint)).then((agrees) => agrees && testing.mutate({ endpointId })),
    toggle: () =>
      void confirm(enabled ? disableQuestion(url) : enableQuestion(url)).then(
        (agrees) => agrees && updating.mutate({ endpointId, enabled: !enabled }),
      ),
    activate: () =>
      void confirm(activateQuestion(endpoint)).then((agrees) => agrees && activating.mutate({ endpointId })),
    cancelRotation: () =>
      void confirm(cancelQuestion(endpoint)).then((agrees) => agrees && cancelling.mutate({ endpointId })),
    remove: () => void confirm(removeQuestion(url)).then((agrees) => agrees && removing.mutate({ endpointId })),
  };
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

function EditEndpoint({ endpoint, onClose }: { endpoint: WebhookEndpoint; onClose: () => void }) {
  const update = useApiAction('updateWebhook', {
    done: 'The endpoint has been changed.',
    onDone: onClose,
    isForm: true,
  });
  return (
    <Dialog title="Edit the endpoint" onClose={onClose}>
      <p className="quiet form-intro">
        A new URL applies to runs that begin later. Order, limits, headers and retries apply to attempts that begin
        later.
      </p>
      <EndpointForm
        endpoint={endpoint}
        action="Save the changes"
        error={update.error}
        isBusy={update.isPending}
        onClose={onClose}
        onSubmit={(changed) => {
          if (Object.keys(changed).length === 0) onClose();
          else update.mutate({ endpointId: endpoint.id, ...changed });
        }}
      />
    </Dialog>
  );
}
