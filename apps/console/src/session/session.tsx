import type { ApiContext } from '@callplane/server/requests';
import { createContext, useContext } from 'react';

/** Who is signed in: the context of the key, limited by the session. */
export interface Session extends ApiContext {
  signOut: () => void;
}

export const SessionContext = createContext<Session | undefined>(undefined);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === undefined) throw new Error('The page is outside of a session.');
  return session;
}

export type Scope = ApiContext['scopes'][number];

/** @returns whether the session has a scope, so that pages leave out requests that the API would refuse */
export function useScope(scope: Scope): boolean {
  return useSession().scopes.includes(scope);
}

/** @returns the gateway: the one of the settings, or of this origin */
export function useSignalingUrl(): string {
  const { session } = useSession();
  return session?.signalingUrl ?? `${location.origin.replace(/^http/, 'ws')}/v1/signaling`;
}
