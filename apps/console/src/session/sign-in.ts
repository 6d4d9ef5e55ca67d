import type { ApiContext } from '@callplane/server/requests';
import { ApiError, readError } from '../api/api-error.js';
import { CSRF_HEADER } from '../api/call.js';
import { CONSOLE_LIMITS } from '../limits.js';

/**
 * Exchanges a key or the code of a one-time link for a session, which is in a cookie that no script can read.
 * @throws ApiError if the API refuses the credential
 */
export async function signIn(credential: string, readOnly: boolean): Promise<ApiContext> {
  const response = await fetch('/v1/console/sessions', {
    method: 'POST',
    headers: { ...CSRF_HEADER, authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
    body: JSON.stringify(readOnly ? { readOnly } : {}),
    credentials: 'same-origin',
    signal: AbortSignal.timeout(CONSOLE_LIMITS.requestTimeoutMs),
  }).catch(() => {
    throw new ApiError(0, { code: 'NO_ANSWER', message: 'The API cannot be reached. Check the connection.' });
  });
  if (!response.ok) throw await readError(response);
  announceSession();
  return (await response.json()) as ApiContext;
}

const LOGIN_HASH = /^#login=([A-Za-z0-9_-]{1,200})$/;

/** The code of a one-time link. Removes it from the address, so that neither history nor a copied address keeps it. */
export function takeLoginCode(): string | undefined {
  const code = LOGIN_HASH.exec(location.hash)?.[1];
  if (code !== undefined) history.replaceState(null, '', location.pathname + location.search);
  return code;
}

/** A link that is opened in a tab with its own page changes the fragment only. Loading the page again takes the code. */
export function followLoginLinks(): () => void {
  const follow = () => {
    if (LOGIN_HASH.test(location.hash)) location.reload();
  };
  window.addEventListener('hashchange', follow);
  return () => window.removeEventListener('hashchange', follow);
}

/** The cookie of the session belongs to all tabs of the browser. A channel does not deliver to itself. */
const channel = new BroadcastChannel('callplane:session');

export function announceSession(): void {
  channel.postMessage(null);
}

export function onSessionOfOtherTab(listener: () => void): () => void {
  channel.addEventListener('message', listener);
  return () => channel.removeEventListener('message', listener);
}
