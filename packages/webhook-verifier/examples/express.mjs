// WEBHOOK_SECRETS='{"1":"whsec_…","2":"whsec_…"}' PORT=4000 node express.mjs
import express from 'express';
import { verifyWebhook } from '@callplane/webhook-verifier';

const secrets = JSON.parse(process.env.WEBHOOK_SECRETS);
const app = express();

// express.raw leaves the bytes unchanged. Any express.json() must come after this route.
app.post('/webhooks', express.raw({ type: () => true, limit: '1mb' }), async (request, response) => {
  // Without a request body, `request.body` is undefined.
  const result = verifyWebhook({ headers: request.headers, rawBody: request.body ?? '', secrets });
  if (!result.ok) {
    console.warn(result.reason, result.message);
    // The version's secret is not deployed here yet: 503 is retried, 400 is final.
    return response.sendStatus(result.reason === 'unknown_signing_key_version' ? 503 : 400);
  }
  await processOnce(result.event);
  response.sendStatus(204);
});

const server = app.listen(process.env.PORT, () => console.log(`listening on ${server.address().port}`));

/** In memory, to keep this short. Use a transaction of your database; the README shows it. */
const processed = new Set();
async function processOnce(event) {
  if (processed.has(event.id)) return;
  processed.add(event.id);
  console.log(`processing ${event.type} ${event.id}`);
}
