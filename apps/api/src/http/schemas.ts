import {
  ENDPOINT_HEADERS_MAX,
  FILTER_PATHS_MAX,
  FILTER_VALUES_MAX,
  type ErrorDetail,
  PATH_ID_PATTERN,
  type Option,
  type OptionTable,
  type OptionValues,
  type ChangingValues,
  type WebhookFilter,
} from '@callplane/core';
import { type Static, type TObject, type TProperties, type TSchema, Type, type TOptional, type TUnsafe } from 'typebox';
import type { UntaggedRoute, UnvalidatedParts } from './route.js';

/** An object with these fields. A body with any other field is rejected. */
export function strictObject<T extends TProperties>(properties: T): TObject<T> {
  return Type.Object(properties, { additionalProperties: false });
}

/** A {@link strictObject} that is a component of the OpenAPI document. */
export function namedObject<T extends TProperties>(
  title: string,
  properties: T,
  options: { description?: string; dependentRequired?: Record<string, string[]> } = {},
): TObject<T> {
  return Type.Object(properties, { title, ...options, additionalProperties: false });
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

export const metadata = () => Type.Unsafe<Record<string, unknown>>({ ...FREE_OBJECT });

/**
 * An application-defined JSON object in a request. Reads return a value equal to the one that was sent.
 * @param defaults the meaning of an absent value; empty if it changes nothing.
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

export function oneOf<const T extends string>(values: readonly T[], description?: string) {
  return Type.Unsafe<T>({ type: 'string', enum: [...values], ...(description === undefined ? {} : { description }) });
}

/** The fields of a row that the schema names. JSON writes times in the form of the API. */
export function present<S extends TObject>(schema: S, row: Record<keyof Static<S>, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.keys(schema.properties).map((name) => [name, row[name as keyof Static<S>]]));
}

const TENANT_QUERY = {
  projectId: Type.Optional(Type.String({ description: "Must match the key's project." })),
  environmentId: Type.Optional(Type.String({ description: "Must match the key's environment." })),
};

/** Lets the query of each route name the project and the environment. They must match the API key. */
export function withTenantQuery(routes: readonly UntaggedRoute[]): UntaggedRoute[] {
  return routes.map((route) => ({
    ...route,
    query: Type.Object({ ...TENANT_QUERY, ...route.query?.properties }),
    validate: (parts) => [...tenantFailures(parts), ...(route.validate?.(parts) ?? [])],
  }));
}

function tenantFailures({ caller, query }: UnvalidatedParts): ErrorDetail[] {
  return (['projectId', 'environmentId'] as const)
    .filter((name) => typeof query[name] === 'string' && query[name] !== caller[name])
    .map((name) => ({ path: `query.${name}`, message: `must match the ${name} of the API key` }));
}

/** The route checks it, like headers. */
export function filterSchema() {
  const value = { anyOf: [...['string', 'number', 'boolean', 'null'].map((type) => ({ type })), PREFIX] };
  const values = { type: 'array', items: value, minItems: 1, maxItems: FILTER_VALUES_MAX };
  const documented = { additionalProperties: values, minProperties: 1, maxProperties: FILTER_PATHS_MAX };
  return orNull(Type.Unsafe<WebhookFilter>({ type: 'object', 'x-document': documented }));
}

const PREFIX = {
  type: 'object',
  properties: { prefix: { type: 'string' } },
  required: ['prefix'],
  additionalProperties: false,
};

type Use = 'read' | 'create' | 'update';
type Schemas<Values> = { [Name in keyof Values]: TUnsafe<Values[Name]> };
type OptionalSchemas<Values> = { [Name in keyof Values]: TOptional<TUnsafe<Values[Name]>> };

/**
 * The schemas of options in an answer, in a body that creates their resource, and in one that changes it.
 * @param readsBounds whether answers document the bounds of numbers, too.
 * @param recording the schema of an option of this type
 */
export function optionSchemas<Table extends OptionTable>(
  table: Table,
  { readsBounds, recording = Type.Null() }: { readsBounds: boolean; recording?: TSchema },
) {
  const each = (use: Use, isOptional: boolean, isBounded = true) =>
    Object.fromEntries(
      Object.entries(table).flatMap(([name, option]) => {
        if (use === 'update' && option.isFixed === true) return [];
        const schema = schemaOf(option, use, isBounded, recording);
        return [[name, isOptional ? Type.Optional(schema) : schema]];
      }),
    );
  return {
    read: each('read', false, readsBounds) as Schemas<OptionValues<Table>>,
    create: each('create', true) as OptionalSchemas<OptionValues<Table>>,
    update: each('update', true) as OptionalSchemas<ChangingValues<Table>>,
  };
}

function schemaOf(option: Option, use: Use, isBounded: boolean, recording: TSchema): TSchema {
  const text = typeof option.description === 'string' ? option.description : option.description[use];
  const description = text === null ? {} : { description: text };
  const defaults = use === 'create' ? { default: option.default } : {};
  if (option.type === 'boolean') return { ...Type.Boolean(description), ...defaults };
  if (option.type === 'choice') return { ...oneOf(Object.keys(option.texts), text ?? undefined), ...defaults };
  if (option.type === 'headers') {
    // The route checks the headers: errors of Ajv for each of thousands would cost too much.
    const documented = { additionalProperties: { type: 'string' }, maxProperties: ENDPOINT_HEADERS_MAX };
    return { type: 'object', 'x-document': documented, ...description, ...defaults };
  }
  if (option.type === 'filter') return { ...filterSchema(), ...description, ...defaults };
  if (option.type === 'recording') return { ...orNull(recording), ...description, ...defaults };
  const bounds = isBounded ? { minimum: option.min, maximum: option.max } : {};
  if (option.default === null) return { ...orNull(Type.Integer({ ...bounds, ...description })), ...defaults };
  return Type.Integer({ ...bounds, ...defaults, ...description });
}
