import { useQueryClient } from '@tanstack/react-query';
import type { ApiContext } from '@callplane/server/requests';
import { useCallback, useEffect, useMemo, useState, type ReactNode } from 'react';
import { asApiError } from '../api/api-error.js';
import { callApi, onSessionEnded } from '../api/call.js';
import { Failure, Loading } from '../components/states.js';
import { toastError } from '../components/toasts.js';
import { SignInPage } from '../pages/sign-in/sign-in.page.js';
import { watchIdle } from './idle.js';
import { announceSession, followLoginLinks, onSessionOfOtherTab, signIn, takeLoginCode } from './sign-in.js';
import { SessionContext, type Session } from './session.js';

type State =
  | { name: 'loading' }
  | { name: 'signed-out'; why?: string | undefined }
  | { name: 'signed-in'; context: ApiContext }
  | { name: 'failed'; error: unknown };

const loginCode = takeLoginCode();
/** A code works only once, and React runs effects twice in development. */
let exchange: Promise<ApiContext> | undefined;

/** Ends a session that may change something once nobody has used the browser for its idle time. */
function useIdleEnd(state: State, end: (why: string) => void): void {
  const session = state.name === 'signed-in' ? state.context.session : undefined;
  useEffect(() => {
    // A read-only session may stay on a screen on the wall.
    if (session === undefined || session.readOnly) return undefined;
    return watchIdle(session.idleSeconds * 1_000, () => {
      // If the API cannot be reached, the next check tries again.
      void callApi('endConsoleSession', {}).then(
        () => end('The session ended because nobody used the console for a while. Sign in to continue on this page.'),
        () => undefined,
      );
    });
  }, [session, end]);
}

function isSame(one: ApiContext, other: ApiContext): boolean {
  return one.environmentId === other.environmentId && one.scopes.join() === other.scopes.join();
}

export function SessionGate({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const [state, setState] = useState<State>({ name: 'loading' });
  const load = useCallback(async (code?: string) => {
    try {
      const context = code === undefined ? await callApi('readContext', {}) : await (exchange ??= signIn(code, false));
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
  useEffect(followLoginLinks, []);
  // Otherwise the page would show one environment while its requests reach the one of the other tab's session.
  useEffect(
    () =>
      onSessionOfOtherTab(() => {
        // After 401, the sign-in page is there already.
        const onFailure = (failure: unknown) => {
          if (asApiError(failure).status !== 401) location.reload();
        };
        void callApi('readContext', {}).then((now) => {
          if (state.name !== 'signed-in' || !isSame(now, state.context)) location.reload();
        }, onFailure);
      }),
    [state],
  );
  const end = useCallback(
    (why?: string) => {
      announceSession();
      client.clear();
      setState({ name: 'signed-out', why });
    },
    [client],
  );
  useIdleEnd(state, end);
  const session = useMemo<Session | undefined>(() => {
    if (state.name !== 'signed-in') return undefined;
    const signOut = () => {
      // The session lives on if the API did not end it.
      void callApi('endConsoleSession', {}).then(
        () => end(),
        (failure: unknown) => {
          const error = asApiError(failure);
          if (error.status === 401) end();
          else toastError(error);
        },
      );
    };
    return { ...state.context, signOut };
  }, [end, state]);

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
