import { typeid } from 'typeid-js';

/** Every kind of id and its prefix. */
export const ID_PREFIXES = {
  project: 'proj',
  environment: 'env',
  apiKey: 'key',
  room: 'room',
  participant: 'part',
  session: 'sess',
  token: 'tok',
  operation: 'op',
  webhookEndpoint: 'whep',
  event: 'evt',
  delivery: 'dlv',
  attempt: 'att',
  recovery: 'rcv',
  request: 'req',
} as const;

export type IdKind = keyof typeof ID_PREFIXES;

/**
 * A new TypeID (`room_01jd…`): prefix and 26 characters that sort by time.
 * Source: https://github.com/jetify-com/typeid, version 0.3.
 */
export function newId(kind: IdKind): string {
  return typeid(ID_PREFIXES[kind]).toString();
}

/** What a path segment must look like to be looked up at all; anything else is a 400. */
export const PATH_ID_PATTERN = '^[A-Za-z0-9_-]{1,128}$';

/** An `x-request-id` that a caller sends is kept when it looks like this. */
export const REQUEST_ID_PATTERN = /^[A-Za-z0-9_.:-]{1,128}$/;
