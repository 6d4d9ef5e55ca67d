import type { WebhookDeliveryDetail, WebhookEndpoint } from '@callplane/server/requests';
import { type KeyboardEvent, useId, useState } from 'react';
import { Code } from '../../components/text.js';
import { opensslCommand, receiverSnippets, type Snippet } from './snippets.js';

/** How a receiver verifies requests, in several languages. */
export function VerifySnippets({ endpoint }: { endpoint: Pick<WebhookEndpoint, 'signingKeyVersion'> }) {
  return (
    <div className="stack">
      <p className="quiet">
        A receiver verifies the raw body before it parses it, with the secret of the version in{' '}
        <code>x-service-signing-key-version</code>. Retries and replays keep the event id: store it with your work, and
        skip one that you know.
      </p>
      <SnippetTabs label="Verify a request" snippets={receiverSnippets(endpoint.signingKeyVersion)} />
    </div>
  );
}

/** Code in several languages, one at a time. Arrow keys move between them. */
function SnippetTabs({ label, snippets }: { label: string; snippets: readonly Snippet[] }) {
  const id = useId();
  const [name, setName] = useState(snippets[0]?.name);
  const chosen = snippets.find((snippet) => snippet.name === name) ?? snippets[0];
  if (chosen === undefined) return null;
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = snippets.at((snippets.indexOf(chosen) + step) % snippets.length);
    if (next === undefined) return;
    setName(next.name);
    document.getElementById(id + next.name)?.focus();
  };
  return (
    <div className="tabs">
      <div role="tablist" aria-label={label} className="tab-list" onKeyDown={onKeyDown}>
        {snippets.map((snippet) => (
          <button
            key={snippet.name}
            id={id + snippet.name}
            type="button"
            role="tab"
            aria-selected={snippet === chosen}
            aria-controls={`${id}panel`}
            tabIndex={snippet === chosen ? 0 : -1}
            onClick={() => setName(snippet.name)}
          >
            {snippet.label}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}panel`} aria-labelledby={id + chosen.name} className="tab-panel">
        <Code text={chosen.code} label={`${label}: ${chosen.label}`} />
      </div>
    </div>
  );
}

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
