import { mayUse, PublicError, scopeFailure, type Caller, type Scope } from '@callplane/core';

/** @throws PublicError INSUFFICIENT_SCOPE, which names the scopes, unless the caller has at least one of them. */
export function requireScope(
  caller: Pick<Caller, 'keyType' | 'scopes' | 'session'>,
  ...scopes: readonly Scope[]
): void {
  if (scopes.some((scope) => mayUse(caller, scope))) return;
  throw new PublicError('INSUFFICIENT_SCOPE', { message: scopeFailure(caller, scopes) });
}
