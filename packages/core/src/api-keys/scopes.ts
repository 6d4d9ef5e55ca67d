/** What a secret key may be allowed to do; each endpoint names the one that it needs. */
export const SCOPES = [
  'rooms:create',
  'rooms:read',
  'rooms:end',
  'tokens:create',
  'participants:read',
  'participants:remove',
  'webhooks:read',
  'webhooks:write',
] as const;

export type Scope = (typeof SCOPES)[number];

export const API_KEY_TYPES = ['secret', 'publishable'] as const;

export type ApiKeyType = (typeof API_KEY_TYPES)[number];

/** Who calls: every repository look-up that a request can reach takes it first. */
export interface Tenant {
  readonly projectId: string;
  readonly environmentId: string;
  /** W3C Trace Context of the request, if it came with one: what the request causes is written under it. */
  readonly traceparent?: string | null;
}

/** An authenticated caller. */
export interface Caller extends Tenant {
  readonly keyId: string;
  readonly keyType: ApiKeyType;
  readonly scopes: readonly Scope[];
}

/** A publishable key is refused everywhere but on routes that need no scope. */
export function mayUse(caller: Pick<Caller, 'keyType' | 'scopes'>, scope: Scope): boolean {
  return caller.keyType === 'secret' && caller.scopes.includes(scope);
}
