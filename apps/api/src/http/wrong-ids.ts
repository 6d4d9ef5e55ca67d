import { idProblem, PublicError, type ErrorDetail, type IdKind } from '@callplane/core';

/** The fields of paths, queries and bodies that take an id, and its kind. A client chooses the ids of tracks. */
const KINDS = new Map<string, IdKind>([
  ['roomId', 'room'],
  ['participantId', 'participant'],
  ['sessionId', 'session'],
  ['endpointId', 'webhookEndpoint'],
  ['deliveryId', 'delivery'],
  ['recoveryId', 'recovery'],
  ['eventId', 'event'],
  ['to', 'participant'],
]);

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
    const kind = KINDS.get(name);
    const ids: unknown[] = Array.isArray(value) ? value : [value];
    return ids.flatMap((id, index) => {
      const message = kind === undefined || typeof id !== 'string' ? null : idProblem(kind, id);
      return message === null ? [] : [{ path: `${part}.${name}${Array.isArray(value) ? `[${index}]` : ''}`, message }];
    });
  });
}
