import type { WebhookEndpointWithSecret } from '@callplane/server/requests';
import { useState } from 'react';
import { useApiAction } from '../../api/hooks.js';
import { Dialog } from '../../components/dialog.js';
import { navigate } from '../../navigation/location.js';
import { EndpointForm } from './endpoint-form.js';
import { SecretDialog } from './rotate-secret.js';

/** Registers an endpoint, shows its secret once, and goes to its page. */
export function CreateEndpoint({ onClose }: { onClose: () => void }) {
  const [made, setMade] = useState<WebhookEndpointWithSecret>();
  // The form closes while its request runs, and the secret of the endpoint is shown all the same.
  const [isHidden, setHidden] = useState(false);
  const create = useApiAction('createWebhook', {
    onDone: setMade,
    onError: () => setHidden(false),
    isForm: true,
  });
  const close = () => {
    if (create.isPending) setHidden(true);
    else onClose();
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
  if (isHidden) return null;
  return (
    <Dialog title="Add an endpoint" onClose={close}>
      <p className="quiet form-intro">
        The endpoint receives the events of this environment that happen from now on. Its signing secret is shown once,
        after this step.
      </p>
      <EndpointForm
        action="Add the endpoint"
        error={create.error}
        isBusy={create.isPending}
        onClose={close}
        onSubmit={(_, { description, ...others }) => {
          create.mutate({ ...others, ...(description === null ? {} : { description }) });
        }}
      />
    </Dialog>
  );
}
