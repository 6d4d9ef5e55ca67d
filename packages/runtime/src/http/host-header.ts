import type { IncomingMessage } from 'node:http';
import type { Refusal } from './refusal.js';

/** A host name or an address, with or without a port. */
const HOST_PATTERN = /^[A-Za-z0-9._~%!$&'()*+,;=:[\]-]*$/;

/**
 * Returns what is wrong with the `Host` header of a request, or null. With two headers, or with a value that is no
 * host, a proxy and this server could see different hosts (RFC 9112, section 3.2).
 */
export function hostProblem(request: IncomingMessage): string | null {
  let count = 0;
  const { rawHeaders } = request;
  for (let n = 0; n < rawHeaders.length; n += 2) {
    const name = rawHeaders[n] ?? '';
    // Compares the length first for speed, because this runs for every header of every request.
    if (name.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  if (count > 1) return 'must be sent once';
  if (count === 0) return isHttp11(request) ? 'is required' : null;
  return HOST_PATTERN.test(request.headers.host ?? '') ? null : 'must be a host name with an optional port';
}

/** Returns the refusal of a request with a wrong `Host` header, or null. For servers without middleware. */
export function hostRefusal(request: IncomingMessage): Omit<Refusal, 'requestId'> | null {
  const problem = hostProblem(request);
  if (problem === null) return null;
  return { status: 400, code: 'VALIDATION_FAILED', message: `The Host header ${problem}.` };
}

function isHttp11({ httpVersionMajor, httpVersionMinor }: IncomingMessage): boolean {
  return httpVersionMajor === 1 && httpVersionMinor >= 1;
}
