import { CLIENT_LIMITS } from './limits.js';
import type { CallOptions, OperationFacts, OperationId } from './operation.js';

/** The options of all operations together, as the caller passed them. */
export interface AllOptions extends CallOptions {
  idempotencyKey?: string;
  waitSeconds?: number;
}

/** A request that can be sent several times. */
export interface Request {
  id: OperationId;
  facts: OperationFacts;
  /** Path and query, beginning with `/v1`. */
  target: string;
  headers: Record<string, string>;
  body: string | undefined;
}

/** The ids of the API's paths. Anything else could lead to another path, such as `..`. */
const PATH_ID = /^[A-Za-z0-9_-]{1,128}$/;

/**
 * Distributes the fields of the input to path, query and body.
 * @param newKey makes an idempotency key
 * @throws TypeError if the path needs a field that the input lacks.
 */
export function buildRequest(
  id: OperationId,
  facts: OperationFacts,
  { input, options, newKey }: { input: object; options: AllOptions; newKey: () => string },
): Request {
  const left = new Map(Object.entries(input).filter(([, value]) => value !== undefined));
  const path = facts.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value: unknown = left.get(name);
    left.delete(name);
    if (typeof value === 'string' && PATH_ID.test(value)) return value;
    throw new TypeError(`${id} needs \`${name}\`, an id such as the API returns it, not ${describe(value)}.`);
  });
  const query = new URLSearchParams();
  for (const name of facts.query ?? []) {
    const value = left.get(name) as string | number | boolean | undefined;
    left.delete(name);
    if (value !== undefined) query.set(name, String(value));
  }
  if (facts.hasBody !== true && left.size > 0) {
    throw new TypeError(`${id} has no field \`${[...left.keys()].join('`, `')}\`.`);
  }
  return {
    id,
    facts,
    target: query.size === 0 ? path : `${path}?${query.toString()}`,
    headers: headersOf(facts, options, newKey),
    body: facts.hasBody === true ? JSON.stringify(bodyOf(facts, left)) : undefined,
  };
}

/** A field of the body that is named like one of the path has the prefix `to` in the input. */
function bodyOf({ path }: OperationFacts, fields: ReadonlyMap<string, unknown>): object {
  const named = [...fields].map(([name, value]) => {
    const inPath = name.replace(/^to([A-Z])/, (_, first: string) => first.toLowerCase());
    return [path.includes(`{${inPath}}`) ? inPath : name, value];
  });
  return Object.fromEntries(named) as object;
}

function headersOf(facts: OperationFacts, options: AllOptions, newKey: () => string): Record<string, string> {
  const { idempotencyKey, waitSeconds, requestId } = options;
  if (idempotencyKey !== undefined && !/^[\x20-\x7e]{1,255}$/.test(idempotencyKey)) {
    throw new TypeError('`idempotencyKey` must be 1 to 255 printable ASCII characters.');
  }
  if (requestId !== undefined && !/^[A-Za-z0-9_.:-]{1,128}$/.test(requestId)) {
    throw new TypeError('`requestId` must be 1 to 128 characters of A-Z, a-z, 0-9, "_", ".", ":" and "-".');
  }
  return {
    ...(facts.hasBody === true ? { 'content-type': 'application/json' } : {}),
    // One key for all attempts makes their repetition harmless.
    ...(facts.hasIdempotencyKey === true ? { 'idempotency-key': idempotencyKey ?? newKey() } : {}),
    ...(facts.hasPrefer === true && waitSeconds !== undefined ? { prefer: preference(waitSeconds) } : {}),
    ...(requestId === undefined ? {} : { 'x-request-id': requestId }),
  };
}

function preference(waitSeconds: number): string {
  if (!Number.isInteger(waitSeconds) || waitSeconds < 0 || waitSeconds > CLIENT_LIMITS.waitSecondsMax) {
    throw new TypeError(
      `\`waitSeconds\` must be a whole number from 0 to ${CLIENT_LIMITS.waitSecondsMax}, not ${String(waitSeconds)}.`,
    );
  }
  return waitSeconds === 0 ? 'respond-async' : `wait=${waitSeconds}`;
}

function describe(value: unknown): string {
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
