/** Permissions of secret keys; each route names the scope that it needs. */
export const SCOPES = [
  'rooms:create',
  'rooms:read',
  'rooms:update',
  'rooms:end',
  'tokens:create',
  'participants:read',
  'participants:update',
  'participants:remove',
  'webhooks:read',
  'webhooks:write',
] as const;

export type Scope = (typeof SCOPES)[number];

export const API_KEY_TYPES = ['secret', 'publishable'] as const;

export type ApiKeyType = (typeof API_KEY_TYPES)[number];

/**
 * The caller's tenant. Every repository function that a request can reach takes it, right after its database handle.
 */
export interface Tenant {
  readonly projectId: string;
  readonly environmentId: string;
  /** W3C Trace Context of the request, if it sent one; the events and operations of the request carry it. */
  readonly traceparent?: string | null;
}

/** Where a console session comes from: an API key, or a one-time link of `rtc console login`. */
export const CONSOLE_SESSION_SOURCES = ['api_key', 'link'] as const;
type ConsoleSessionSource = (typeof CONSOLE_SESSION_SOURCES)[number];

/** What a caller may know of its console session. */
export interface ConsoleSession {
  readonly id: string;
  readonly source: ConsoleSessionSource;
  readonly readOnly: boolean;
  readonly projectName: string;
  readonly environmentName: string;
  readonly createdAt: Date;
  readonly endsAt: Date;
}

/** An authenticated caller. */
export interface Caller extends Tenant {
  readonly keyId: string;
  readonly keyType: ApiKeyType;
  readonly scopes: readonly Scope[];
  /** Present if the caller sent the cookie of a console session. `keyId` is then its key, or of a link the session. */
  readonly session?: ConsoleSession;
  /** Present if the caller sent the code of a link: its hash. Only the sign-in accepts it. */
  readonly loginCodeHash?: Uint8Array;
}

/**
 * Whether a caller's key grants a scope. A publishable key grants none, so it may only use routes that need no scope.
 */
export function mayUse(caller: Pick<Caller, 'keyType' | 'scopes'>, scope: Scope): boolean {
  return caller.keyType === 'secret' && caller.scopes.includes(scope);
}
