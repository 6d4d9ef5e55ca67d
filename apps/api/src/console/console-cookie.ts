import { isConsoleSecret, parseUrl, PublicError } from '@callplane/core';
import type { Request } from 'express';
import { isRead } from '../http/request-context.js';

/** Browsers accept a name with this prefix only over https, for exactly one host, and with `Path=/`. */
const SECURE_NAME = '__Host-callplane_session';
const PLAIN_NAME = 'callplane_session';
/** A request that changes something has this header. Forms and links cannot send it. */
const CSRF_HEADER = 'x-callplane-csrf';
/** The longest `Cookie` header that is read. The console sets one short cookie. */
const HEADER_MAX = 8192;

/** The secret of the session in the cookie of a request; null if there is none, or more than one. */
export function consoleSecretOf({ headers, secure }: Pick<Request, 'headers' | 'secure'>): string | null {
  const header = headers.cookie;
  if (header === undefined || header.length > HEADER_MAX) return null;
  const name = `${nameFor(secure)}=`;
  const values = header
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(name))
    .map((pair) => pair.slice(name.length));
  // A sibling host could add a cookie of its own beside ours.
  const [value] = values;
  return value !== undefined && values.length === 1 && isConsoleSecret(value) ? value : null;
}

/** The `Set-Cookie` header for a session that lives for `seconds`; with 0 it deletes the cookie. */
export function consoleCookie(value: string, isSecure: boolean, seconds: number): string {
  const attributes = ['Path=/', `Max-Age=${seconds}`, 'HttpOnly', 'SameSite=Strict', ...(isSecure ? ['Secure'] : [])];
  return [`${nameFor(isSecure)}=${value}`, ...attributes].join('; ');
}

function nameFor(isSecure: boolean): string {
  return isSecure ? SECURE_NAME : PLAIN_NAME;
}

/**
 * Refuses a request with a cookie that a page of another origin has caused. `SameSite=Strict` already keeps the cookie
 * out of requests of other sites; these checks also cover other hosts and ports of the same site.
 * @throws PublicError CROSS_SITE_REQUEST
 */
export function refuseCrossSite(request: Pick<Request, 'method' | 'headers' | 'secure'>): void {
  const { origin, host } = request.headers;
  const site = request.headers['sec-fetch-site'];
  const isFromHere = site === undefined || site === 'same-origin' || (site === 'none' && isRead(request));
  const isOwnOrigin = origin === undefined ? isRead(request) : isOriginOf(origin, host, request.secure);
  const isMarked = isRead(request) || request.headers[CSRF_HEADER] === '1';
  if (!isFromHere || !isOwnOrigin || !isMarked) throw new PublicError('CROSS_SITE_REQUEST');
}

function isOriginOf(origin: string, host: string | undefined, isSecure: boolean): boolean {
  const from = parseUrl(origin);
  if (from === null || host === undefined || (isSecure && from.protocol !== 'https:')) return false;
  // `Host` may name the default port, `Origin` never does.
  return parseUrl(`${from.protocol}//${host}`)?.host === from.host;
}
