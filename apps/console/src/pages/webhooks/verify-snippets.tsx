import type { WebhookDeliveryDetail } from '@callplane/server/requests';
import { shellQuoted } from '../../api/curl.js';
import { Section } from '../../components/layout.js';
import { Code } from '../../components/text.js';
import { SNIPPETS } from './snippets.js';

/** @param version of the secret that the receiver expects */
export function VerifySnippets({ version }: { version: number }) {
  return (
    <div className="stack">
      <p className="quiet">
        A receiver verifies the raw body before it parses it, with the secret of the version in{' '}
        <code>x-service-signing-key-version</code>. Retries and replays keep the event id: store it with your work, and
        skip one that you know.
      </p>
      {Object.entries(SNIPPETS).map(([language, code], at) => (
        // One of them is open at a time.
        <details key={language} name="verify" open={at === 0}>
          <summary>{language}</summary>
          <Code text={code.replace('VERSION', String(version))} label={`Verify a request: ${language}`} />
        </details>
      ))}
    </div>
  );
}

/** A command that computes the signature of the last request of a delivery, if there was one. */
export function VerifyDelivery({ delivery }: { delivery: WebhookDeliveryDetail }) {
  const { lastAttempt, body, id: deliveryId } = delivery;
  const signature = lastAttempt?.requestHeaders?.['x-service-signature'];
  const [, signedAt, beginning] = /^t=(\d+),v1=([0-9a-f]+)/.exec(signature ?? '') ?? [];
  if (lastAttempt === null || signedAt === undefined) return null;
  const signedContent = `${signedAt}.${deliveryId}.${lastAttempt.replayCount}.${body}`;
  const command = [
    "read -rs WEBHOOK_SECRET   # paste the secret: it stays out of the shell's history",
    `printf '%s' ${shellQuoted(signedContent)} \\`,
    '  | openssl dgst -sha256 -hmac "$WEBHOOK_SECRET"',
  ].join('\n');
  return (
    <Section title="Verify">
      <div className="stack">
        <p className="quiet">
          The command computes the signature of the last request with secret version {lastAttempt.signingKeyVersion}. It
          begins with <code>{beginning}</code>. A receiver that computes another value uses another secret, or not the
          exact bytes of the body.
        </p>
        <Code text={command} label="Verify this delivery" />
      </div>
    </Section>
  );
}
