import { randomBytes } from 'node:crypto';
import {
  API_KEY_RANDOM_BYTES,
  CONSOLE_SESSION_SECONDS,
  formatConsoleSecret,
  hashApiKey,
  newId,
  PublicError,
  readScopes,
  scopeFailure,
  type Caller,
} from '@callplane/core';
import { endConsoleSessions, findConsoleSessionsByHash, insertConsoleSession, useConsoleLink } from '@callplane/db';
import { Type } from 'typebox';
import { ContextSchema, presentContext } from '../context/context.routes.js';
import type { ConsoleSettings, Deps } from '../deps.js';
import { UNAUTHENTICATED } from '../http/authenticate.js';
import { contextOf } from '../http/request-context.js';
import { defineRoute, tagged, type Route } from '../http/route.js';
import { namedObject } from '../http/schemas.js';
import { consoleCookie } from './console-cookie.js';

const CreateConsoleSessionBody = namedObject('CreateConsoleSession', {
  readOnly: Type.Optional(
    Type.Boolean({ default: false, description: 'Whether the session gets only the scopes that end in `:read`.' }),
  ),
});

/** None if the console is switched off. */
export function consoleRoutes(deps: Deps): Route[] {
  const { console } = deps;
  if (console === null) return [];
  return tagged('Console', [
    defineRoute({
      method: 'post',
      path: '/v1/console/sessions',
      operationId: 'createConsoleSession',
      summary: 'Sign in to the console',
      description:
        'Send a secret API key, or the code of a link of `rtc console login`, as `Authorization: Bearer`. The answer ' +
        'sets the cookie of a session, which every route accepts instead of the key. The session has the scopes of ' +
        'the key or link. It ends after 8 hours, after one hour without a request, and with its key.',
      scope: null,
      document: { security: [{ apiKey: [] }] },
      setsCookie: true,
      body: CreateConsoleSessionBody,
      responses: { 201: { description: 'The context of the session.', schema: ContextSchema } },
      errors: ['INSUFFICIENT_SCOPE', 'CONSOLE_SESSION_LIMIT_REACHED'],
      async handle({ caller, body, response }) {
        const { secret, seconds, context } = await signIn(deps, caller, body.readOnly ?? false);
        contextOf(response).logFields['consoleSessionId'] = context.session.id;
        const headers = { 'set-cookie': consoleCookie(secret, response.req.secure, seconds) };
        return { status: 201, body: presentContext(context, console.signalingUrl), headers };
      },
    }),
    defineRoute({
      method: 'delete',
      path: '/v1/console/sessions/current',
      operationId: 'endConsoleSession',
      summary: 'Sign out of the console',
      description: 'Ends the session of the request, at every instance within 5 seconds, and deletes its cookie.',
      scope: null,
      setsCookie: true,
      responses: { 204: { description: 'The session has ended.', schema: null } },
      errors: ['CONSOLE_SESSION_NOT_FOUND'],
      async handle({ caller, response }) {
        await signOut(deps, console, caller);
        return { status: 204, headers: { 'set-cookie': consoleCookie('', response.req.secure, 0) } };
      },
    }),
  ]);
}

type ConsoleDeps = Pick<Deps, 'database' | 'logger' | 'clock'>;

/**
 * Opens a session for the caller of a secret key, or of a link.
 * @returns the value of its cookie, of which only the hash is stored, and how many seconds it lasts at most
 */
async function signIn(deps: ConsoleDeps, caller: Caller, readOnly: boolean) {
  // A session must not make another one: it would never end. A publishable key has no scopes.
  if (caller.session !== undefined) throw new PublicError('UNAUTHENTICATED', UNAUTHENTICATED);
  if (caller.keyType !== 'secret') throw new PublicError('INSUFFICIENT_SCOPE', { message: scopeFailure(caller, []) });
  const secret = formatConsoleSecret(randomBytes(API_KEY_RANDOM_BYTES));
  const hash = hashApiKey(secret);
  if (caller.loginCodeHash === undefined) await openForKey(deps, caller, { hash, readOnly });
  else await openForLink(deps, caller, caller.loginCodeHash, { hash, readOnly });
  const hex = hash.toString('hex');
  const context = (await findConsoleSessionsByHash(deps.database.sql, [hex])).get(hex);
  // The session or its key was revoked in this moment.
  if (context === undefined || context.revokedAt !== null) throw new PublicError('UNAUTHENTICATED', UNAUTHENTICATED);
  const { id, source, createdAt, endsAt } = context.session;
  const { environmentId, keyId } = context;
  deps.logger.info('console session opened', {
    consoleSessionId: id,
    source,
    readOnly: context.session.readOnly,
    environmentId,
    keyId,
  });
  return { secret, seconds: Math.ceil((endsAt.getTime() - createdAt.getTime()) / 1000), context };
}

async function openForKey(
  { database, clock }: ConsoleDeps,
  { environmentId, keyId, scopes }: Caller,
  { hash, readOnly }: { hash: Buffer; readOnly: boolean },
): Promise<void> {
  const session = {
    id: newId('consoleSession'),
    environmentId,
    apiKeyId: keyId,
    scopes: readOnly ? readScopes(scopes) : scopes,
    readOnly,
    lifetimeSeconds: CONSOLE_SESSION_SECONDS,
  };
  if ((await insertConsoleSession(database, session, { secretHash: hash }, clock.now())) === 'limit') {
    throw new PublicError('CONSOLE_SESSION_LIMIT_REACHED');
  }
}

async function openForLink(
  { database, clock }: ConsoleDeps,
  caller: Caller,
  codeHash: Uint8Array,
  { hash, readOnly }: { hash: Buffer; readOnly: boolean },
): Promise<void> {
  const made = { secretHash: hash, readOnly };
  const id = await useConsoleLink(database.prisma, caller, codeHash, made, clock.now());
  // Another request has used the code since this one was authenticated.
  if (id === null) throw new PublicError('UNAUTHENTICATED', UNAUTHENTICATED);
}

async function signOut(deps: ConsoleDeps, console: ConsoleSettings, caller: Caller): Promise<void> {
  const { session, environmentId, keyId } = caller;
  if (session === undefined) throw new PublicError('CONSOLE_SESSION_NOT_FOUND');
  const [ended] = await endConsoleSessions(deps.database.prisma, { id: session.id, environmentId });
  deps.logger.info('console session ended', { consoleSessionId: session.id, environmentId, keyId });
  if (ended?.secretHash) console.onSessionEnded(ended.secretHash);
}
