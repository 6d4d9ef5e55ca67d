import type { WebhookEndpoint } from '@callplane/server/requests';
import { useId, useState, type KeyboardEvent } from 'react';
import { Code } from '../../components/text.js';
import { receiverSnippets, type Snippet } from './snippets.js';

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
export function SnippetTabs({ label, snippets }: { label: string; snippets: readonly Snippet[] }) {
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
