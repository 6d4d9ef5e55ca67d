import { idProblem, PublicError, type ErrorCode, type ErrorDetail, type IdKind } from '@callplane/core';

interface IdField {
  /** Null: clients choose these ids. */
  kind: IdKind | null;
  /** The error if the id is in a path and names nothing. Null: it has none of its own. */
  notFound: ErrorCode | null;
}

/** The fields of paths, queries and bodies that take an id. */
const ID_FIELDS: ReadonlyMap<string, IdField> = new Map([
  ['roomId', { kind: 'room', notFound: 'ROOM_NOT_FOUND' }],
  ['participantId', { kind: 'participant', notFound: 'PARTICIPANT_NOT_FOUND' }],
  ['sessionId', { kind: 'session', notFound: null }],
  ['trackId', { kind: null, notFound: 'TRACK_NOT_FOUND' }],
  ['endpointId', { kind: 'webhookEndpoint', notFound: 'WEBHOOK_NOT_FOUND' }],
  ['deliveryId', { kind: 'delivery', notFound: 'DELIVERY_NOT_FOUND' }],
  ['recoveryId', { kind: 'recovery', notFound: 'RECOVERY_NOT_FOUND' }],
  ['eventId', { kind: 'event', notFound: 'EVENT_NOT_FOUND' }],
  ['recordingId', { kind: 'recording', notFound: 'RECORDING_NOT_FOUND' }],
  ['fileId', { kind: 'recordingFile', notFound: null }],
  ['to', { kind: 'participant', notFound: null }],
]);

/** The error codes of the ids in the path of a route. */
export function notFoundCodes(path: string): ErrorCode[] {
  return [...path.matchAll(/\{(\w+)\}/g)].flatMap(([, name = '']) => ID_FIELDS.get(name)?.notFound ?? []);
}

/**
 * Adds to a 404 which ids of the request have the prefix of another kind. The texts depend on the request alone, so
 * they do not tell which ids exist.
 */
export function withIdProblems(error: unknown, parts: Readonly<Record<string, unknown>>): unknown {
  if (!(error instanceof PublicError) || error.status !== 404) return error;
  const problems = Object.entries(parts).flatMap(([part, fields]) => problemsOf(part, fields));
  const [first] = problems;
  if (first === undefined) return error;
  return new PublicError(error.code, {
    message: `${error.message} ${first.path} ${first.message}.`,
    details: [...problems, ...(error.details ?? [])],
    headers: error.headers,
  });
}

function problemsOf(part: string, fields: unknown): ErrorDetail[] {
  if (typeof fields !== 'object' || fields === null) return [];
  return Object.entries(fields).flatMap(([name, value]) => {
    const kind = ID_FIELDS.get(name)?.kind;
    const ids: unknown[] = Array.isArray(value) ? value : [value];
    return ids.flatMap((id, index) => {
      const message = kind == null || typeof id !== 'string' ? null : idProblem(kind, id);
      return message === null ? [] : [{ path: `${part}.${name}${Array.isArray(value) ? `[${index}]` : ''}`, message }];
    });
  });
}
