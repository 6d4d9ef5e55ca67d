import {
  type AllOptions,
  buildRequest,
  type InputOf,
  type OperationId,
  OPERATIONS,
  type ResultOf,
} from '@callplane/server/requests';
import { CONSOLE_LIMITS } from '../limits.js';
import { ApiError, readError } from './api-error.js';
import { randomKey } from './attempt-key.js';

/** The API refuses changes with the session's cookie that lack this header, which other sites cannot send. */
export const CSRF_HEADER = { 'x-callplane-csrf': '1' };

/**
 * Calls one operation of the OpenAPI document with the session's cookie.
 * @param input the fields of path, query and body together
 * @throws ApiError for every failure except an abort by the caller
 */
export async function callApi<Id extends OperationId>(
  id: Id,
  input: InputOf<Id>,
  options: AllOptions = {},
): Promise<ResultOf<Id>> {
  const { signal, ...others } = options;
  const request = buildRequest(id, OPERATIONS[id], {
    input,
    options: others,
    newKey: randomKey,
  });
  const response = await answerOf(
    request.target,
    {
      method: request.facts.method,
      headers: { ...request.headers, ...CSRF_HEADER },
      ...(request.body === undefined ? {} : { body: request.body }),
      credentials: 'same-origin',
      signal: AbortSignal.any([
        AbortSignal.timeout(CONSOLE_LIMITS.requestTimeoutMs),
        ...(signal === undefined ? [] : [signal]),
      ]),
    },
    signal,
  );
  if (!response.ok) {
    const error = await readError(response);
    if (error.status === 401) target.dispatchEvent(new Event('ended'));
    throw error;
  }
  return (response.status === 204 ? undefined : await response.json()) as ResultOf<Id>;
}

async function answerOf(target: string, init: RequestInit, signal: AbortSignal | undefined): Promise<Response> {
  try {
    return await fetch(target, init);
  } catch (error) {
    if (signal?.aborted === true) throw error;
    const message =
      init.method === 'GET'
        ? 'The API cannot be reached. Check the connection; the console tries again by itself.'
        : 'The API did not answer, so the change may have been made. Check before you repeat it.';
    throw new ApiError(0, { code: 'NO_ANSWER', message });
  }
}

/** The API's answer 401 to any request ends the session of all pages. */
const target = new EventTarget();

export function onSessionEnded(listener: () => void): () => void {
  target.addEventListener('ended', listener);
  return () => target.removeEventListener('ended', listener);
}
