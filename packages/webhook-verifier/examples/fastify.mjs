import Fastify from 'fastify';
import { verifyWebhook } from '@callplane/webhook-verifier';

const secrets = JSON.parse(process.env.WEBHOOK_SECRETS);
const processed = new Set(); // A database in practice: see the README.
const fastify = Fastify();

// Keeps the raw bytes, which the signature covers; only for the routes of this plugin.
fastify.register(async (webhooks) => {
  webhooks.removeAllContentTypeParsers();
  webhooks.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  webhooks.post('/webhooks', async (request, reply) => {
    const result = verifyWebhook({ headers: request.headers, rawBody: request.body ?? '', secrets });
    if (!result.ok) {
      console.error(result.reason, result.message);
      return reply.code(result.reason === 'unknown_signing_key_version' ? 503 : 400).send();
    }
    const { event } = result;
    if (!processed.has(event.id)) {
      processed.add(event.id);
      console.log('processing', event.type, event.id);
    }
    return reply.code(204).send();
  });
});

const address = await fastify.listen({ host: '127.0.0.1', port: Number(process.env.PORT ?? 3000) });
console.log('listening on', new URL(address).port);
