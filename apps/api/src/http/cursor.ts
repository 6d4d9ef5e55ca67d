import { createHash } from 'node:crypto';
import type { ErrorDetail } from '@callplane/core';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { Type, type Static, type TObject, type TProperties } from 'typebox';

/**
 * Cursors are opaque but not signed: any caller can forge one (docs/decisions/0004). A cursor is therefore untrusted
 * input. Its position must match the schema of its list before a query uses it. A cursor names no tenant; the query
 * supplies the tenant.
 *
 * The format is `2.<position>.<check>`. The position is a JSON array with the values of the schema's properties, in the
 * order of the schema. The check ties the cursor to its list, environment, path and filters.
 */
const VERSION = '2';
const CHECK_LENGTH = 8;
/** Maximum length of a cursor. The lists of this API produce cursors below 300 characters. */
const CURSOR_CHARACTERS_MAX = 512;

export interface List<Position extends TProperties = TProperties> {
  readonly name: string;
  readonly parameter: 'cursor' | 'after';
  readonly position: TObject<Position>;
  /** Query parameters that decide only how or where reading begins. A cursor is valid with any value of them. */
  readonly unbound: readonly string[];
  readonly refusal: string;
  /** Whether the service of the route reads this value of the parameter by itself. */
  readonly takesElsewhere: (text: string) => boolean;
}

export function defineList<Position extends TProperties>(
  name: string,
  position: Position,
  options: Partial<Pick<List, 'parameter' | 'unbound' | 'refusal' | 'takesElsewhere'>> = {},
): List<Position> {
  return {
    name,
    parameter: 'cursor',
    unbound: [],
    position: Type.Object(position, { additionalProperties: false }),
    refusal: 'is not a valid cursor for this list and its filters',
    takesElsewhere: () => false,
    ...options,
  };
}

export function idOf(prefix: string) {
  return Type.String({ pattern: `^${prefix}_[0-9a-z]{26}$` });
}

/** The scope that a cursor is valid for, in addition to its list. */
interface CursorScope {
  environmentId: string;
  path: Readonly<Record<string, unknown>>;
  filters: Readonly<Record<string, unknown>>;
}

/** The position of the requested page, and an encoder for the cursor of the next page. */
export interface PageCursor<Position = Record<string, unknown>> {
  /** Null on the first page, and if the service reads the value by itself. */
  readonly position: Position | null;
  encode(position: Position): string;
}

// The test of the request schemas also checks the schemas of cursors.
const ajv = new Ajv2020({ strict: true, validateSchema: false, meta: false });

/** Compiles the schema of a list. Called once per route. */
export function cursorsOf(list: List) {
  const names = Object.keys(list.position.properties);
  const isPosition = ajv.compile<Record<string, unknown>>(list.position);

  const encode = (scope: CursorScope, position: Record<string, unknown>): string => {
    const body = Buffer.from(JSON.stringify(names.map((name) => position[name]))).toString('base64url');
    return `${VERSION}.${body}.${checkOf(list, scope, body)}`;
  };
  const decode = (scope: CursorScope, text: string): unknown => {
    const [version, body = '', check, ...rest] = text.split('.');
    if (version !== VERSION || rest.length > 0 || check !== checkOf(list, scope, body)) return null;
    const values = parseBase64Json(body);
    if (!Array.isArray(values) || values.length !== names.length) return null;
    return Object.fromEntries(names.map((name, index) => [name, values[index] as unknown]));
  };

  return {
    /** Reads the cursor from the query. Adds a failure unless it is a cursor of this list, path and filters. */
    read(
      { environmentId, path, query }: Omit<CursorScope, 'filters'> & { query: Readonly<Record<string, unknown>> },
      details: ErrorDetail[],
    ): PageCursor {
      const { [list.parameter]: text, limit: _, projectId: _p, environmentId: _e, ...others } = query;
      const filters = Object.fromEntries(Object.entries(others).filter(([name]) => !list.unbound.includes(name)));
      const scope = { environmentId, path, filters };
      const page = (position: Record<string, unknown> | null): PageCursor => ({
        position,
        encode: (next) => encode(scope, next),
      });
      if (typeof text !== 'string' || list.takesElsewhere(text)) return page(null);
      const decoded = text.length > CURSOR_CHARACTERS_MAX ? null : decode(scope, text);
      if (isPosition(decoded)) return page(decoded);
      details.push({ path: `query.${list.parameter}`, message: list.refusal });
      return page(null);
    },
  };
}

export type PagePosition<L extends List> = Static<L['position']>;

/** Parses base64url-encoded JSON. Returns undefined if the text is invalid. */
function parseBase64Json(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString());
  } catch {
    return undefined;
  }
}

function checkOf(list: List, { environmentId, path, filters }: CursorScope, body: string): string {
  const scope = JSON.stringify([list.name, environmentId, sortedEntries(path), sortedEntries(filters)]);
  return createHash('sha256').update(`${scope}.${body}`).digest('base64url').slice(0, CHECK_LENGTH);
}

function sortedEntries(record: Readonly<Record<string, unknown>>): [string, unknown][] {
  return Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1));
}
