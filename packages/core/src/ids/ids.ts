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
  recording: 'rec',
  recordingFile: 'recf',
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

const ID_NAMES: Readonly<Record<IdKind, string>> = {
  project: 'a project',
  environment: 'an environment',
  apiKey: 'an API key',
  room: 'a room',
  participant: 'a participant',
  session: 'a session',
  token: 'a token',
  operation: 'an operation',
  webhookEndpoint: 'a webhook endpoint',
  event: 'an event',
  delivery: 'a delivery',
  attempt: 'an attempt',
  recovery: 'a recovery',
  request: 'a request',
  consoleSession: 'a console session',
  recording: 'a recording',
  recordingFile: 'a file of a recording',
};

/**
 * Why a text is no id of this kind, whatever exists: its prefix belongs to another kind, or to none. Null if the prefix is
 * right.
 */
export function idProblem(kind: IdKind, text: string): string | null {
  const expected = `${ID_PREFIXES[kind]}_`;
  if (text.startsWith(expected)) return null;
  const kinds = Object.keys(ID_PREFIXES) as IdKind[];
  const given = kinds.find((each) => text.startsWith(`${ID_PREFIXES[each]}_`));
  const other = given === undefined ? '' : `; ${ID_PREFIXES[given]}_ begins the id of ${ID_NAMES[given]}`;
  return `must be the id of ${ID_NAMES[kind]}, ${expected}…${other}`;
}

/** Path segments that do not match are rejected with a 400, without a look-up. */
export const PATH_ID_PATTERN = '^[A-Za-z0-9_-]{1,128}$';

/** A caller's `x-request-id` is kept when it matches. */
export const REQUEST_ID_PATTERN = /^[A-Za-z0-9_.:-]{1,128}$/;
