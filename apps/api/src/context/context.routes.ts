import {
  API_KEY_TYPES,
  CONSOLE_SESSION_IDLE_SECONDS,
  CONSOLE_SESSION_SOURCES,
  SCOPES,
  type Caller,
} from '@callplane/core';
import { type RequestHandler, Router } from 'express';
import { Type } from 'typebox';
import type { Health } from '@callplane/runtime';
import { contextOf } from '../http/request-context.js';
import { respond } from '../http/respond.js';
import type { PlainRoute, Reply } from '../http/route.js';
import { namedObject, oneOf, orNull, present, timestamp } from '../http/schemas.js';
import { onlyMethods } from '../http/errors.js';
import type { SigningKeyRing } from '../signing-keys/signing-key-ring.js';

const ConsoleSessionSchema = namedObject('ConsoleSession', {
  id: Type.String(),
  source: oneOf(CONSOLE_SESSION_SOURCES, 'Whether an API key or a link of `rtc console login` made the session.'),
  readOnly: Type.Boolean({ description: 'Whether the session has only scopes that end in `:read`.' }),
  projectName: Type.String(),
  environmentName: Type.String(),
  createdAt: timestamp('Time of the sign-in.'),
  expiresAt: timestamp('When the session ends at the latest.'),
  idleSeconds: Type.Integer({ description: 'Seconds without a request after which the session ends.' }),
  signalingUrl: orNull(
    Type.String({ description: 'The gateway for calls in the console. Null: `/v1/signaling` of this address.' }),
  ),
});

export const ContextSchema = namedObject('ApiContext', {
  apiVersion: Type.Literal('v1'),
  projectId: Type.String(),
  environmentId: Type.String(),
  keyId: Type.String({
    description: 'The API key; of a console session the key that made it, or of a link the session.',
  }),
  keyType: oneOf(API_KEY_TYPES),
  scopes: Type.Array(oneOf(SCOPES)),
  session: Type.Optional(ConsoleSessionSchema),
});

export function presentContext(
  { projectId, environmentId, keyId, keyType, scopes, session }: Caller,
  signalingUrl: string | null,
) {
  const context = { apiVersion: 'v1', projectId, environmentId, keyId, keyType, scopes };
  if (session === undefined) return context;
  const shown = { expiresAt: session.endsAt, idleSeconds: CONSOLE_SESSION_IDLE_SECONDS, signalingUrl };
  return { ...context, session: present(ConsoleSessionSchema, { ...session, ...shown }) };
}

export const CONTEXT_ROUTE: PlainRoute = {
  method: 'get',
  path: '/v1/',
  operationId: 'readContext',
  summary: 'Read the context of the API key',
  description: 'Accepts a secret or a publishable key, or a console session, which it describes. Needs no scope.',
  tag: 'Context',
  response: { description: 'The project, environment, type and scopes of the key.', schema: ContextSchema },
  headers: [],
  errors: ['UNAUTHENTICATED', 'CROSS_SITE_REQUEST', 'INTERNAL', 'UNAVAILABLE'],
};

/** Ignores the query and the body, and has no rate limit, because the answer only says who the caller is. */
export function readContext(signalingUrl: string | null): RequestHandler {
  return (_request, response) => {
    const context = contextOf(response);
    context.route = CONTEXT_ROUTE.path;
    if (context.caller === null) throw new Error('the context was read without authentication');
    respond(response, { status: 200, body: presentContext(context.caller, signalingUrl) });
  };
}

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
