// app/webhooks/route.js of Next.js. A route handler gets a Request of the Fetch API, whose body is still unread.
import { verifyWebhook } from '@callplane/webhook-verifier';

export const runtime = 'nodejs';

export async function POST(request) {
  const rawBody = new Uint8Array(await request.arrayBuffer());
  const secrets = JSON.parse(process.env.WEBHOOK_SECRETS);
  const result = verifyWebhook({ headers: request.headers, rawBody, secrets });
  if (!result.ok) {
    console.error(result.reason, result.message);
    return new Response(null, { status: result.reason === 'unknown_signing_key_version' ? 503 : 400 });
  }
  await processOnce(result.event);
  return new Response(null, { status: 204 });
}

const processed = new Set(); // A database in practice: see the README of the verifier.

async function processOnce(event) {
  if (processed.has(event.id)) return;
  processed.add(event.id);
  console.log('processing', event.type, event.id);
}
