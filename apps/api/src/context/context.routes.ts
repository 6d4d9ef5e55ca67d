import {
  API_KEY_TYPES,
  CONSOLE_SESSION_IDLE_SECONDS,
  CONSOLE_SESSION_SOURCES,
  SCOPES,
  type Caller,
} from '@callplane/core';
import type { RequestHandler } from 'express';
import { Type } from 'typebox';
import { contextOf } from '../http/request-context.js';
import { respond } from '../http/respond.js';
import type { PlainRoute } from '../http/route.js';
import { namedObject, oneOf, orNull, present, timestamp } from '../http/schemas.js';

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
