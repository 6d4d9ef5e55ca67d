import type { Health, HealthReport } from '@callplane/runtime';
import { PublicError } from '@callplane/core';
import { Router, type Request, type Response } from 'express';
import { contextOf } from '../http/request-context.js';
import { respond } from '../http/respond.js';
import type { SigningKeyRing } from '../signing-keys/signing-key-ring.js';

/** How long a verifier may keep the public keys, in seconds: shorter than a new key is published before it signs. */
const JWKS_MAX_AGE_SECONDS = 60;

/** What stands outside `/v1` and needs no key: health, public keys. */
export function publicRouter(deps: { health: Health; signingKeys: SigningKeyRing }): Router {
  const router = Router({ caseSensitive: true });
  const get = (path: string, answer: (response: Response) => Promise<void> | void): void => {
    const layer = router.route(path);
    layer.get(async (_request: Request, response: Response) => {
      contextOf(response).route = path;
      await answer(response);
    });
    layer.all(() => {
      throw new PublicError('METHOD_NOT_ALLOWED', { headers: { allow: 'GET, HEAD' } });
    });
  };
  const report = (response: Response, { status, body }: HealthReport): void => respond(response, { status, body });
  get('/livez', (response) => report(response, deps.health.livez()));
  get('/readyz', async (response) => report(response, await deps.health.readyz()));
  get('/.well-known/jwks.json', async (response) =>
    respond(response, {
      status: 200,
      body: await deps.signingKeys.jwks(),
      headers: { 'cache-control': `public, max-age=${JWKS_MAX_AGE_SECONDS}` },
    }),
  );
  return router;
}
