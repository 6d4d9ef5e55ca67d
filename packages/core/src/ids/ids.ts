import { TypeID, typeidUnboxed } from 'typeid-js';

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
  consoleSession: 'cses',
} as const;

export type IdKind = keyof typeof ID_PREFIXES;

/**
 * Creates a TypeID (`room_01jd…`): prefix and 26 characters that sort by time.
 * Source: https://github.com/jetify-com/typeid, version 0.3.
 */
export function newId(kind: IdKind): string {
  return typeidUnboxed(ID_PREFIXES[kind]);
}

/** The lowest id of this kind that could be created at this time: ids sort by their time, in milliseconds. */
export function firstIdAt(kind: IdKind, time: Date): string {
  const hex = time.getTime().toString(16).padStart(12, '0');
  return TypeID.fromUUID(ID_PREFIXES[kind], `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`).toString();
}

/** Path segments that do not match are rejected with a 400, without a look-up. */
export const PATH_ID_PATTERN = '^[A-Za-z0-9_-]{1,128}$';

/** A caller's `x-request-id` is kept when it matches. */
export const REQUEST_ID_PATTERN = /^[A-Za-z0-9_.:-]{1,128}$/;
