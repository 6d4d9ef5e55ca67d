import type { WebhookEndpoint, WebhookEndpointWithSecret } from '@callplane/server/requests';
import { useState } from 'react';
import { useApiAction } from '../../api/hooks.js';
import { Button } from '../../components/button.js';
import { Dialog } from '../../components/dialog.js';
import { Field, FormEnd, Select } from '../../components/fields.js';
import { Code } from '../../components/text.js';

/** When the new secret begins to sign, in seconds. The first one leaves time to deploy the secret. */
const ACTIVATIONS = [
  [86_400, 'In 24 hours'],
  [3_600, 'In one hour'],
  [604_800, 'In 7 days'],
  [0, 'At once'],
] as const;

export function RotateSecret({ endpoint, onClose }: { endpoint: WebhookEndpoint; onClose: () => void }) {
  const [activateInSeconds, setSeconds] = useState<number>(ACTIVATIONS[0][0]);
  const [rotated, setRotated] = useState<WebhookEndpointWithSecret>();
  const rotating = useApiAction('rotateWebhookSecret', { onDone: setRotated, isForm: true });
  // While the request runs, the form stays: the secret in its answer is shown once.
  const close = () => {
    if (!rotating.isPending) onClose();
  };
  if (rotated !== undefined) return <SecretDialog endpoint={rotated} onClose={onClose} />;
  return (
    <Dialog title="Rotate the signing secret?" onClose={close}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          rotating.mutate({ endpointId: endpoint.id, activateInSeconds });
        }}
      >
        <p>
          Callplane shows a new secret for <strong>{endpoint.url}</strong>. Runs that have begun keep version{' '}
          {endpoint.signingKeyVersion}, for up to 7 days: your receiver needs both.
        </p>
        <Field
          label="The new secret signs new runs"
          hint={
            activateInSeconds === 0
              ? 'Your receiver does not know it yet. Until it does, let it answer 503 to an unknown version, so that the delivery is tried again.'
              : 'Give it to your receiver before. You can activate it earlier, or cancel the rotation.'
          }
        >
          {(attributes) => (
            <Select
              {...attributes}
              options={ACTIVATIONS}
              value={activateInSeconds}
              onValue={(seconds) => setSeconds(Number(seconds))}
            />
          )}
        </Field>
        <FormEnd error={rotating.error} action="Rotate the secret" isBusy={rotating.isPending} onCancel={close} />
      </form>
    </Dialog>
  );
}

/** Shows a signing secret once, and holds it only while the dialog is open. A click beside it must not lose it. */
export function SecretDialog({ endpoint, onClose }: { endpoint: WebhookEndpointWithSecret; onClose: () => void }) {
  const version = endpoint.nextSigningKeyVersion ?? endpoint.signingKeyVersion;
  return (
    <Dialog title={`Signing secret, version ${version}`} onClose={onClose} closesOutside={false}>
      <div className="stack">
        <p className="notice warn">
          Store this secret now. It is shown once: neither the console nor the API can show it again.
        </p>
        <Code text={endpoint.signingSecret} label="Signing secret" wrap />
        <p className="quiet">
          Your receiver verifies each request with it. The header <code>x-service-signing-key-version</code> of a
          request names the version, here <code>{version}</code>.
        </p>
      </div>
      <div className="row dialog-actions">
        <Button kind="primary" onClick={onClose}>
          I have stored it
        </Button>
      </div>
    </Dialog>
  );
}
