import { useQueryClient } from '@tanstack/react-query';
import type { ApiContext } from '@callplane/server/requests';
import { useCallback, useEffect, useMemo, useState, type ReactNode } from 'react';
import { asApiError } from '../api/api-error.js';
import { callApi } from '../api/call.js';
import { onSessionEnded } from '../api/session-events.js';
import { Failure, Loading } from '../components/states.js';
import { SignInPage } from '../pages/sign-in/sign-in.page.js';
import { SessionContext, type Session } from './session.js';
import { signIn, takeLoginCode } from './sign-in.js';

type State =
  | { name: 'loading' }
  | { name: 'signed-out'; why?: string | undefined }
  | { name: 'signed-in'; context: ApiContext }
  | { name: 'failed'; error: unknown };

const loginCode = takeLoginCode();
/** A code works only once, and React runs effects twice in development. */
let exchange: Promise<ApiContext> | undefined;

function exchangeCode(code: string): Promise<ApiContext> {
  exchange ??= signIn(code, false);
  return exchange;
}

/** Shows the sign-in page until there is a session, and again after its end. */
export function SessionGate({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const [state, setState] = useState<State>({ name: 'loading' });
  const load = useCallback(async (code?: string) => {
    try {
      const context = code === undefined ? await callApi('readContext', {}) : await exchangeCode(code);
      setState({ name: 'signed-in', context });
    } catch (error) {
      const { status, message } = asApiError(error);
      if (code !== undefined && status === 401) {
        setState({ name: 'signed-out', why: 'The link has expired, or was used before. Ask for a new one.' });
      } else if (status === 401) setState({ name: 'signed-out' });
      else if (code !== undefined && status > 0) setState({ name: 'signed-out', why: message });
      else setState({ name: 'failed', error });
    }
  }, []);
  useEffect(() => void load(loginCode), [load]);
  useEffect(
    () =>
      onSessionEnded(() => {
        client.clear();
        setState((last) =>
          last.name === 'signed-in'
            ? { name: 'signed-out', why: 'The session has ended. Sign in to continue on this page.' }
            : last,
        );
      }),
    [client],
  );
  const session = useMemo<Session | undefined>(() => {
    if (state.name !== 'signed-in') return undefined;
    const signOut = () => {
      const end = () => {
        client.clear();
        setState({ name: 'signed-out' });
      };
      void callApi('endConsoleSession', {}).then(end, end);
    };
    return { ...state.context, signOut };
  }, [client, state]);

  if (session !== undefined) return <SessionContext value={session}>{children}</SessionContext>;
  if (state.name === 'failed') {
    return (
      <div className="alone">
        <Failure error={state.error} onRetry={() => void load()} />
      </div>
    );
  }
  if (state.name === 'signed-out') {
    return <SignInPage why={state.why} onSignedIn={(context) => setState({ name: 'signed-in', context })} />;
  }
  return (
    <div className="alone">
      <Loading what="the console" lines={2} />
    </div>
  );
}
