import type { WebhookEndpointWithSecret } from '@callplane/server/requests';
import { useState } from 'react';
import { useApiAction } from '../../api/hooks.js';
import { Dialog } from '../../components/dialog.js';
import { navigate } from '../../navigation/location.js';
import { EndpointForm, NEW_ENDPOINT } from './endpoint-form.js';
import { SecretDialog } from './rotate-secret.js';

/** Registers an endpoint, shows its secret once, and goes to its page. */
export function CreateEndpoint({ onClose }: { onClose: () => void }) {
  const [made, setMade] = useState<WebhookEndpointWithSecret>();
  const create = useApiAction('createWebhook', { onDone: setMade, isForm: true });
  // While the request runs, the form stays: the secret in its answer is shown once.
  const close = () => {
    if (!create.isPending) onClose();
  };
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
    <Dialog title="Add an endpoint" onClose={close}>
      <p className="quiet">
        The endpoint receives the events of this environment that happen from now on. Its signing secret is shown once,
        after this step.
      </p>
      <EndpointForm
        action="Add the endpoint"
        error={create.error}
        isBusy={create.isPending}
        onClose={close}
        onSubmit={(changed) => {
          const { description, ...others } = { ...NEW_ENDPOINT, ...changed };
          create.mutate({ ...others, ...(description === null ? {} : { description }) });
        }}
      />
    </Dialog>
  );
}
