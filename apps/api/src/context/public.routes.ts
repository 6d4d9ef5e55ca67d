import type { Health } from '@callplane/runtime';
import { Router, type RequestHandler } from 'express';
import { Type } from 'typebox';
import { onlyMethods } from '../http/errors.js';
import { contextOf } from '../http/request-context.js';
import { respond } from '../http/respond.js';
import type { PlainRoute, Reply } from '../http/route.js';
import type { SigningKeyRing } from '../signing-keys/signing-key-ring.js';
import { namedObject } from '../http/schemas.js';

/** A public key. `publishedJwk` in packages/db creates it. Source: RFC 7517, RFC 7518 section 6.2.1. */
const JwkSchema = namedObject('PublicKey', {
  kty: Type.Literal('EC'),
  crv: Type.Literal('P-256'),
  x: Type.String(),
  y: Type.String(),
  kid: Type.String({ description: "Key identifier. The `kid` in the token's header refers to it." }),
  alg: Type.Literal('ES256'),
  use: Type.Literal('sig'),
});

const JwksSchema = namedObject(
  'PublicKeySet',
  { keys: Type.Array(JwkSchema) },
  { description: 'The public keys that verify participant tokens.' },
);

/**
 * How long a verifier may cache the public keys, in seconds. It is shorter than the time between publication and first
 * use of a new key.
 */
const JWKS_MAX_AGE_SECONDS = 60;

export const JWKS_ROUTE: PlainRoute = {
  method: 'get',
  path: '/.well-known/jwks.json',
  operationId: 'readJwks',
  summary: 'Read the public keys that verify participant tokens',
  description: `Needs no API key. Verifiers may cache the response for ${JWKS_MAX_AGE_SECONDS} seconds. Read it again for an unknown \`kid\`.`,
  tag: 'Keys',
  response: { description: 'The public keys.', schema: JwksSchema },
  headers: ['JwksCacheControl'],
  errors: ['INTERNAL', 'UNAVAILABLE'],
  isPublic: true,
};

/** Serves the routes outside `/v1` that need no API key: health and public keys. */
export function publicRouter(deps: { health: Health; signingKeys: SigningKeyRing }): Router {
  const router = Router({ caseSensitive: true, strict: true });
  const get = (path: string, answer: () => Promise<Reply> | Reply): void => {
    const serve: RequestHandler = async (_request, response) => {
      contextOf(response).route = path;
      respond(response, await answer());
    };
    router
      .route(path)
      .get(serve)
      .all(onlyMethods(['get']));
  };
  get('/livez', () => deps.health.livez());
  get('/readyz', () => deps.health.readyz());
  get(JWKS_ROUTE.path, async () => ({
    status: 200,
    body: await deps.signingKeys.jwks(),
    headers: { 'cache-control': `public, max-age=${JWKS_MAX_AGE_SECONDS}` },
  }));
  return router;
}
