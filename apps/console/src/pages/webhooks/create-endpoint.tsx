import type { WebhookEndpointWithSecret } from '@callplane/server/requests';
import { useState } from 'react';
import { asApiError, type ApiError } from '../../api/api-error.js';
import { useApiAction } from '../../api/hooks.js';
import { Dialog } from '../../components/dialog.js';
import { navigate } from '../../navigation/location.js';
import { EndpointForm } from './endpoint-form.js';
import { SecretDialog } from './secret-dialog.js';

/** Registers an endpoint, shows its secret once, and goes to its page. */
export function CreateEndpoint({ onClose }: { onClose: () => void }) {
  const [made, setMade] = useState<WebhookEndpointWithSecret>();
  const [error, setError] = useState<ApiError>();
  const create = useApiAction('createWebhook', {
    onDone: setMade,
    onError: (failure) => setError(asApiError(failure)),
  });
  if (made !== undefined) {
    return (
      <SecretDialog
        secret={made.signingSecret}
        version={made.signingKeyVersion}
        onClose={() => {
          onClose();
          navigate(`/webhooks/${made.id}`);
        }}
      />
    );
  }
  return (
    <Dialog title="Add an endpoint" onClose={onClose}>
      <p className="quiet form-intro">
        The endpoint receives the events of this environment that happen from now on. Its signing secret is shown once,
        after this step.
      </p>
      <EndpointForm
        action="Add the endpoint"
        error={error}
        isBusy={create.isPending}
        onClose={onClose}
        onSubmit={(input, description) => {
          setError(undefined);
          create.mutate({ ...input, ...(description === '' ? {} : { description }) });
        }}
      />
    </Dialog>
  );
}
