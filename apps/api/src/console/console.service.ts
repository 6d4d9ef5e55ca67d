import { randomBytes } from 'node:crypto';
import {
  API_KEY_RANDOM_BYTES,
  CONSOLE_SESSION_SECONDS,
  formatConsoleSecret,
  hashApiKey,
  newId,
  PublicError,
  readScopes,
  type Caller,
} from '@callplane/core';
import {
  endConsoleSession,
  findConsoleSessionsByHash,
  openConsoleSession,
  useConsoleLink,
  type ConsoleIdentity,
} from '@callplane/db';
import type { ConsoleSettings, Deps } from '../deps.js';
import { UNAUTHENTICATED } from '../http/authenticate.js';

type ConsoleDeps = Pick<Deps, 'database' | 'logger'>;

export interface SignedIn {
  /** The value of the cookie. Only its hash is stored. */
  secret: string;
  /** How long the session lasts at most. */
  seconds: number;
  context: ConsoleIdentity;
}

/** Opens a session for the caller of a secret key, or of a link. */
export async function signIn(deps: ConsoleDeps, caller: Caller, readOnly: boolean): Promise<SignedIn> {
  // A session must not make another one: it would never end. A publishable key has no scopes.
  if (caller.session !== undefined) throw new PublicError('UNAUTHENTICATED', UNAUTHENTICATED);
  if (caller.keyType !== 'secret') throw new PublicError('INSUFFICIENT_SCOPE');
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
  { database }: ConsoleDeps,
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
  if ((await openConsoleSession(database, session, hash)) === 'limit') {
    throw new PublicError('CONSOLE_SESSION_LIMIT_REACHED');
  }
}

async function openForLink(
  { database }: ConsoleDeps,
  caller: Caller,
  codeHash: Uint8Array,
  { hash, readOnly }: { hash: Buffer; readOnly: boolean },
): Promise<void> {
  const id = await useConsoleLink(database.sql, caller, codeHash, { secretHash: hash, readOnly });
  // Another request has used the code since this one was authenticated.
  if (id === null) throw new PublicError('UNAUTHENTICATED', UNAUTHENTICATED);
}

/** Ends the session of the caller. */
export async function signOut(deps: ConsoleDeps, console: ConsoleSettings, caller: Caller): Promise<void> {
  const { session, environmentId, keyId } = caller;
  if (session === undefined) throw new PublicError('CONSOLE_SESSION_NOT_FOUND');
  const hash = await endConsoleSession(deps.database.sql, caller, session.id);
  deps.logger.info('console session ended', { consoleSessionId: session.id, environmentId, keyId });
  if (hash !== null) console.onSessionEnded(hash);
}
