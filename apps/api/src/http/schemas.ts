import { type ErrorDetail, isAcceptedTime, PATH_ID_PATTERN } from '@callplane/core';
import { type TObject, type TProperties, type TSchema, Type } from 'typebox';
import type { Page, PageCursor } from './cursor.js';
import type { UnvalidatedParts } from './route.js';

/** An object with named fields. A body with any other field is rejected. */
export function strictObject<T extends TProperties>(
  properties: T,
  options: { title?: string; dependentRequired?: Record<string, string[]> } = {},
): TObject<T> {
  return Type.Object(properties, { additionalProperties: false, ...options });
}

export function pathId(description: string) {
  return Type.String({ pattern: PATH_ID_PATTERN, description });
}

/**
 * A string that the server trims before it counts code points and stores it. At least one character must be visible.
 */
export function trimmedText(max: number, description: string) {
  return Type.String({
    'x-trimmedLength': [1, max],
    'x-document': { minLength: 1, maxLength: max },
    description: `${description} Trimmed, 1-${max} characters.`,
  });
}

/** A query parameter that filters by a {@link trimmedText}. */
export function exactText(max: number, description: string) {
  // PostgreSQL cannot compare with U+0000. Bodies are checked for it when they are parsed.
  return Type.String({ ...trimmedText(max, description), pattern: '^[^\\u0000]*$' });
}

/** Any JSON object. The explicit `additionalProperties` makes generated clients accept any key. */
const FREE_OBJECT = { type: 'object', additionalProperties: true };

/** The application-defined metadata in an answer. */
export const metadata = () => Type.Unsafe<Record<string, unknown>>({ ...FREE_OBJECT });

/**
 * An application-defined JSON object in a request. Reads return a value equal to the one that was sent.
 * @param defaults what an absent value stands for; empty if it changes nothing.
 */
export function metadataObject(description: string, defaults: { default?: object } = { default: {} }) {
  return Type.Unsafe<Record<string, unknown>>({
    ...FREE_OBJECT,
    ...defaults,
    description: `${description} At most 16 KiB of JSON, measured as a read returns it, with numbers written in full.`,
  });
}

export const timestamp = (description: string) => Type.String({ format: 'date-time', description });

export const orNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

/** An enumeration of strings. */
export function oneOf<const T extends string>(values: readonly T[], description?: string) {
  return Type.Unsafe<T>({ type: 'string', enum: [...values], ...(description === undefined ? {} : { description }) });
}

export const PAGE_LIMIT_DEFAULT = 20;

/** Query parameters of every list. */
export function pageQuery() {
  return {
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 100, default: PAGE_LIMIT_DEFAULT, description: 'Maximum number of rows.' }),
    ),
    cursor: Type.Optional(
      Type.String({
        'x-document': { minLength: 1 },
        description: '`nextCursor` of the previous page. Opaque. Send the same filters with it.',
      }),
    ),
  };
}

/** The answer of a list. */
export function page(title: string, item: TSchema) {
  return Type.Object(
    {
      data: Type.Array(item),
      nextCursor: orNull(
        Type.String({ description: 'Send it as `cursor` to get the next page. Null on the last page.' }),
      ),
    },
    { title, additionalProperties: false },
  );
}

/**
 * Reads a page of rows that are ordered by id, the newest first.
 * @param read gets the row before which the page begins, and one row more than the page shows: it tells whether another
 *   page follows.
 */
export async function pageById<Row extends { id: string }>(
  cursor: PageCursor<{ id: string }>,
  query: { limit?: number },
  read: (page: { beforeId: string | null; limit: number }) => PromiseLike<readonly Row[]>,
): Promise<Page<Row>> {
  const limit = query.limit ?? PAGE_LIMIT_DEFAULT;
  const found = await read({ beforeId: cursor.position?.id ?? null, limit: limit + 1 });
  const rows = found.slice(0, limit);
  const last = rows.at(-1);
  return { rows, nextCursor: found.length > limit && last !== undefined ? cursor.encode({ id: last.id }) : null };
}

/**
 * Checks that the times `since` and `until` exist. A schema cannot express this, and its format accepts a leap second
 * (23:59:60), which `Date` cannot parse.
 * @param values not validated yet. The schema reports values that are not strings.
 */
export function timeFailures(part: 'body' | 'query', values: { since?: unknown; until?: unknown }): ErrorDetail[] {
  return (['since', 'until'] as const)
    .filter((name) => typeof values[name] === 'string' && !isAcceptedTime(new Date(values[name])))
    .map((name) => ({ path: `${part}.${name}`, message: 'must be a time from 1970 to 9999' }));
}

/** The optional query parameters of every webhook route. */
export const TenantQuery = Type.Object({
  projectId: Type.Optional(Type.String({ description: "Must match the key's project." })),
  environmentId: Type.Optional(Type.String({ description: "Must match the key's environment." })),
});

/** Rejects a project or environment that differs from that of the API key. */
export function checkTenant({ caller, query }: Pick<UnvalidatedParts, 'caller' | 'query'>): ErrorDetail[] {
  return (['projectId', 'environmentId'] as const)
    .filter((name) => typeof query[name] === 'string' && query[name] !== caller[name])
    .map((name) => ({ path: `query.${name}`, message: `must match the ${name} of the API key` }));
}
