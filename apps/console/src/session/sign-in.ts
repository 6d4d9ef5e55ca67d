import type { ApiContext } from '@callplane/server/requests';
import { readError } from '../api/api-error.js';
import { CSRF_HEADER } from '../api/call.js';

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
  });
  if (!response.ok) throw await readError(response);
  return (await response.json()) as ApiContext;
}

/** The code of a one-time link. Removes it from the address, so that neither history nor a copied address keeps it. */
export function takeLoginCode(): string | undefined {
  const code = /^#login=([A-Za-z0-9_-]{1,200})$/.exec(location.hash)?.[1];
  if (code !== undefined) history.replaceState(null, '', location.pathname + location.search);
  return code;
}
