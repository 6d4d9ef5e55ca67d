import type { WebhookDeliveryDetail } from '@callplane/server/requests';
import { opensslCommand, receiverSnippets, type Snippet } from './snippets.js';
import { SnippetTabs } from './verify-snippets.js';

/** How to verify this delivery: by hand with the values of its last request, or in the code of a receiver. */
export function VerifyDelivery({ delivery }: { delivery: WebhookDeliveryDetail }) {
  const { lastAttempt, body, id: deliveryId, signingKeyVersion } = delivery;
  const signature = lastAttempt?.requestHeaders?.['x-service-signature'];
  const [, signedAt, beginning] = /^t=(\d+),v1=([0-9a-f]+)/.exec(signature ?? '') ?? [];
  const snippets = receiverSnippets(signingKeyVersion);
  if (lastAttempt === null || signedAt === undefined) {
    return <SnippetTabs label="Verify a request" snippets={snippets} />;
  }
  const byHand: Snippet = {
    name: 'openssl',
    label: 'By hand',
    code: opensslCommand({ signedAt, deliveryId, replayCount: lastAttempt.replayCount, body }),
  };
  return (
    <div className="stack">
      <p className="quiet">
        The command computes the signature of the last request with secret version {lastAttempt.signingKeyVersion}. It
        begins with <code>{beginning}</code>. A receiver that computes another value uses another secret, or not the
        exact bytes of the body.
      </p>
      <SnippetTabs label="Verify this delivery" snippets={[byHand, ...snippets]} />
    </div>
  );
}
