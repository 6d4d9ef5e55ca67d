// WEBHOOK_SECRETS='{"1":"whsec_…","2":"whsec_…"}' PORT=4000 node node-http.mjs
import { createServer } from 'node:http';
import { verifyWebhook } from '@callplane/webhook-verifier';

const BODY_BYTES_MAX = 1024 * 1024;
const secrets = JSON.parse(process.env.WEBHOOK_SECRETS);

const server = createServer(async (request, response) => {
  const answer = (status) => response.writeHead(status).end();
  try {
    if (request.method !== 'POST' || request.url !== '/webhooks') return answer(404);
    const rawBody = await readBody(request);
    if (rawBody === null) return answer(413);
    // headersDistinct keeps repeated headers apart.
    const result = verifyWebhook({ headers: request.headersDistinct, rawBody, secrets });
    if (!result.ok) {
      console.warn(result.reason, result.message);
      // The version's secret is not deployed here yet: 503 is retried, 400 is final.
      return answer(result.reason === 'unknown_signing_key_version' ? 503 : 400);
    }
    await processOnce(result.event);
    answer(204);
  } catch (error) {
    console.error(error);
    answer(500);
  }
});
server.listen(process.env.PORT, () => console.log(`listening on ${server.address().port}`));

async function readBody(request) {
  const chunks = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** In memory, to keep this short. Use a transaction of your database; the README shows it. */
const processed = new Set();
async function processOnce(event) {
  if (processed.has(event.id)) return;
  processed.add(event.id);
  console.log(`processing ${event.type} ${event.id}`);
}
