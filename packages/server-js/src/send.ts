import { CallplaneError, type ErrorDetail } from './errors.js';
import { CLIENT_LIMITS } from './limits.js';
import { isRepeatable, linkedTo, pause, pauseBefore } from './retry.js';
import type { Request } from './request.js';

/** Shared by every call of a client. */
export interface Connection {
  /** Without `/v1` and without a slash at its end. */
  origin: string;
  apiKey: string;
  fetch: typeof fetch;
  timeoutMs: number;
  retriesMax: number;
  /** From 0 to 1. */
  random: () => number;
}

export interface Sending {
  signal: AbortSignal | undefined;
  timeoutMs: number;
  retriesMax: number;
}

/**
 * Sends a request, and again after failures that may pass.
 * @returns the parsed body of the response; undefined for 204
 * @throws CallplaneError, or the reason of the signal.
 */
export async function send(connection: Connection, request: Request, sending: Sending): Promise<unknown> {
  const repeatable = isRepeatable(request.id, request.facts, request.headers['idempotency-key'] !== undefined);
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await sendOnce(connection, request, sending);
    } catch (error) {
      sending.signal?.throwIfAborted();
      if (!(error instanceof CallplaneError)) throw error;
      // An earlier attempt, whose response was lost, has deleted it.
      if (attempt > 0 && request.id === 'deleteWebhook' && error.code === 'WEBHOOK_NOT_FOUND') return undefined;
      const { retriesMax } = sending;
      const pauseMs = pauseBefore(error, { attempt, retriesMax, repeatable, random: connection.random() });
      if (pauseMs === null) throw error;
      await pause(pauseMs, sending.signal);
    }
  }
}

async function sendOnce(connection: Connection, request: Request, { signal, timeoutMs }: Sending): Promise<unknown> {
  signal?.throwIfAborted();
  const { ending, unlink } = linkedTo(signal);
  const timeout = { isOver: false };
  const timer = setTimeout(() => {
    timeout.isOver = true;
    ending.abort();
  }, timeoutMs);
  try {
    const response = await connection.fetch(connection.origin + request.target, {
      method: request.facts.method,
      headers: { ...request.headers, accept: 'application/json', authorization: `Bearer ${connection.apiKey}` },
      ...(request.body === undefined ? {} : { body: request.body }),
      // The API never redirects, and the key must not reach another server.
      redirect: 'manual',
      signal: ending.signal,
    });
    return readResponse(request.id, response, await textOf(request.id, response));
  } catch (error) {
    if (error instanceof CallplaneError) throw error;
    const operationId = request.id;
    if (timeout.isOver) {
      const message = `${request.id}: the API did not respond within ${timeoutMs / 1_000} s.`;
      throw new CallplaneError(message, { code: 'TIMED_OUT', operationId, cause: error });
    }
    const message = `${request.id}: the connection to ${connection.origin} failed: ${reasonOf(error)}`;
    throw new CallplaneError(message, { code: 'CONNECTION_FAILED', operationId, cause: error });
  } finally {
    clearTimeout(timer);
    unlink();
  }
}

/** The error that a response to this operation is. */
export async function readFailure(id: string, response: Response): Promise<unknown> {
  try {
    readResponse(id, response, await textOf(id, response));
  } catch (error) {
    return error;
  }
  return invalid(id, response, 'it is not the stream');
}

async function textOf(id: string, response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength;
    if (bytes > CLIENT_LIMITS.responseBytesMax) {
      throw invalid(id, response, `it has more than ${CLIENT_LIMITS.responseBytesMax / 1024 / 1024} MiB`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

const CHECK_BASE_URL = 'Check that `baseUrl` is the address of the API.';

function readResponse(id: string, response: Response, text: string): unknown {
  const { status } = response;
  if (status === 204) return undefined;
  const content: ErrorBody | undefined = parse(text);
  if (status >= 200 && status <= 299 && content !== undefined) return content;
  const described = content?.error;
  if (status < 400 || typeof described?.code !== 'string') {
    throw invalid(id, response, `${sourceOf(response, text)}. ${CHECK_BASE_URL}`);
  }
  // The gateway answers in the same shape, and an API below another path does not find its routes.
  const hint = described.code === 'ROUTE_NOT_FOUND' ? ` ${CHECK_BASE_URL}` : '';
  throw new CallplaneError(`${id}: ${described.message ?? described.code}${hint}`, {
    code: described.code,
    details: described.details ?? [],
    ...responseFacts(id, response),
  });
}

/** The beginning of an answer that did not come from the API. */
function sourceOf({ headers, status }: Response, text: string): string {
  const location = headers.get('location');
  if (status < 400 && location !== null) return `it redirects to ${JSON.stringify(location.slice(0, 200))}`;
  return `its body is not one of the API: ${JSON.stringify(text.slice(0, 200))}`;
}

interface ErrorBody {
  error?: { code?: string; message?: string; details?: ErrorDetail[] };
}

function parse(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

function invalid(id: string, response: Response, problem: string): CallplaneError {
  return new CallplaneError(`${id}: the response with status ${response.status} is invalid, ${problem}`, {
    code: 'INVALID_RESPONSE',
    ...responseFacts(id, response),
  });
}

function responseFacts(operationId: string, { status, headers }: Response) {
  const retryAfter = headers.get('retry-after');
  return {
    status,
    operationId,
    requestId: headers.get('x-request-id'),
    // The API sends seconds; a proxy may send a date, which counts as not sent.
    retryAfterSeconds: retryAfter !== null && /^\d{1,9}$/.test(retryAfter) ? Number(retryAfter) : null,
  };
}

/** fetch reports `fetch failed`, and the reason in its cause. */
export function reasonOf(error: unknown): string {
  const { cause, message } = error as { cause?: { message?: string; code?: string }; message?: string };
  return cause?.message || cause?.code || message || String(error);
}
