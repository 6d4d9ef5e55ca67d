import type { WebhookEndpoint, WebhookEndpointWithSecret } from '@callplane/server/requests';
import { useState } from 'react';
import { asApiError, type ApiError } from '../../api/api-error.js';
import { useApiAction } from '../../api/hooks.js';
import { Button } from '../../components/button.js';
import { useConfirm } from '../../components/confirm.js';
import { Dialog } from '../../components/dialog.js';
import { navigate } from '../../navigation/location.js';
import { EndpointForm } from './endpoint-form.js';
import { SecretDialog } from './secret-dialog.js';

/** The actions of an endpoint. Each says before what will happen. */
export function EndpointActions({ endpoint }: { endpoint: WebhookEndpoint }) {
  const [isEditing, setEditing] = useState(false);
  const [rotated, setRotated] = useState<WebhookEndpointWithSecret>();
  const actions = useActions(endpoint, setRotated);
  return (
    <>
      {/* The API refuses a test of a disabled endpoint. */}
      {endpoint.enabled && (
        <Button onClick={actions.test} isBusy={actions.isTesting}>
          Send a test
        </Button>
      )}
      <Button onClick={() => setEditing(true)}>Edit</Button>
      <Button onClick={actions.rotate} isBusy={actions.isRotating}>
        Rotate the secret
      </Button>
      <Button onClick={actions.toggle} isBusy={actions.isUpdating}>
        {endpoint.enabled ? 'Disable' : 'Enable'}
      </Button>
      <Button kind="danger" onClick={actions.remove} isBusy={actions.isRemoving}>
        Remove
      </Button>
      {isEditing && <EditEndpoint endpoint={endpoint} onClose={() => setEditing(false)} />}
      {rotated !== undefined && (
        <SecretDialog
          secret={rotated.signingSecret}
          version={rotated.signingKeyVersion}
          onClose={() => setRotated(undefined)}
        />
      )}
    </>
  );
}

function useActions(endpoint: WebhookEndpoint, showSecret: (endpoint: WebhookEndpointWithSecret) => void) {
  const confirm = useConfirm();
  const { id: endpointId, url, enabled } = endpoint;
  const testing = useApiAction('testWebhook', {
    done: 'A test event is on its way.',
    onDone: (delivery) => navigate(`/webhooks/${endpointId}/deliveries/${delivery.id}`),
  });
  const updating = useApiAction('updateWebhook', {
    done: (changed) => (changed.enabled ? 'The endpoint is enabled.' : 'The endpoint is disabled.'),
  });
  const rotating = useApiAction('rotateWebhookSecret', { onDone: showSecret });
  const removing = useApiAction('deleteWebhook', {
    done: 'The endpoint has been removed.',
    onDone: () => navigate('/webhooks'),
  });
  return {
    isTesting: testing.isPending,
    isUpdating: updating.isPending,
    isRotating: rotating.isPending,
    isRemoving: removing.isPending,
    test: () => void confirm(testQuestion(endpoint)).then((agrees) => agrees && testing.mutate({ endpointId })),
    toggle: () =>
      void confirm(enabled ? disableQuestion(url) : enableQuestion(url)).then(
        (agrees) => agrees && updating.mutate({ endpointId, enabled: !enabled }),
      ),
    rotate: () => void confirm(rotateQuestion(endpoint)).then((agrees) => agrees && rotating.mutate({ endpointId })),
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

const rotateQuestion = ({ url, signingKeyVersion }: WebhookEndpoint) => ({
  title: 'Rotate the signing secret?',
  body: (
    <>
      <p>
        Runs of <strong>{url}</strong> that begin from now on are signed with version {signingKeyVersion + 1}. Runs that
        have begun keep version {signingKeyVersion}.
      </p>
      <p>
        Your receiver needs both. Until it knows the new secret, let it answer 503 to an unknown version, so that the
        delivery is tried again.
      </p>
    </>
  ),
  action: 'Rotate the secret',
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
  const [error, setError] = useState<ApiError>();
  const update = useApiAction('updateWebhook', {
    done: 'The endpoint has been changed.',
    onDone: onClose,
    onError: (failure) => setError(asApiError(failure)),
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
        error={error}
        isBusy={update.isPending}
        onClose={onClose}
        onSubmit={(changed) => {
          setError(undefined);
          if (Object.keys(changed).length === 0) onClose();
          else update.mutate({ endpointId: endpoint.id, ...changed });
        }}
      />
    </Dialog>
  );
}
