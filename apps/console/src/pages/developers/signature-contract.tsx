import type { SignatureContract } from '@callplane/server/requests';
import { useApi } from '../../api/hooks.js';
import { Facts, Section } from '../../components/layout.js';
import { Loaded } from '../../components/states.js';
import { Code } from '../../components/text.js';
import { durationText } from '../../format.js';

const VERIFY = `import express from 'express';
import { verifyWebhook } from '@callplane/webhook-verifier';

const app = express();
// The signature covers the exact bytes, so nothing may parse the body before.
app.post('/webhooks', express.raw({ type: '*/*' }), (request, response) => {
  const result = verifyWebhook({
    headers: request.headers,
    rawBody: request.body,
    secrets: process.env.WEBHOOK_SECRET,
  });
  if (!result.ok) return response.status(400).send(result.message);
  // Store result.event.id in the transaction of your processing: retries and replays repeat it.
  response.sendStatus(204);
});`;

export function SignatureContractView() {
  const contract = useApi('readSignatureContract', {});
  return (
    <Loaded query={contract} what="the signature contract">
      {(data) => <Contract contract={data} />}
    </Loaded>
  );
}

function Contract({ contract }: { contract: SignatureContract }) {
  const code = (text: string) => <code key={text}>{text}</code>;
  return (
    <>
      <Section title="How a delivery is signed">
        <div className="card">
          <Facts
            facts={[
              ['Algorithm', contract.algorithm],
              ['Signature', code(contract.signatureHeader)],
              ['Its format', code(contract.signatureFormat)],
              ['Delivery id', code(contract.deliveryIdHeader)],
              ['Replay count', code(contract.replayCountHeader)],
              ['Version of the secret', code(contract.secretVersionHeader)],
              ['Signed bytes', contract.signedContent],
              ['Key', contract.secretEncoding],
              ['Tolerance', `${contract.toleranceSeconds} s`],
            ]}
          />
        </div>
      </Section>
      <Section title="How a receiver verifies it">
        <div className="stack">
          <p>{contract.verification}</p>
          <p>{contract.deduplication}</p>
          <Code text={VERIFY} label="Verify with Node" />
        </div>
      </Section>
      <Section title="Retries and replays">
        <div className="card">
          <Facts
            facts={[
              ['Attempts', `${contract.attemptsPerRun} in a run`],
              ['Pauses', contract.backoffSeconds.map((seconds) => durationText(seconds * 1_000)).join(', ')],
              ['Jitter', contract.backoffJitter],
              ['Retried', contract.retryPolicy],
              ['Deadline of an attempt', `${contract.deliveryDeadlineSeconds} s, DNS ${contract.dnsDeadlineSeconds} s`],
              ['Age of a run', `${contract.maximumRunAgeDays} days at most`],
              ['Replays', `${contract.maximumExplicitReplays} at most. ${contract.replay}`],
              ['Destination of a replay', contract.replayDestination],
              ['Kept', contract.retention],
            ]}
          />
        </div>
      </Section>
    </>
  );
}
