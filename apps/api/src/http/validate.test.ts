import { beforeAll, describe, expect, test } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { startTestApi, type TestApi } from '../api.testkit.js';
import { bodyExamples, exampleOf } from '../openapi/examples.js';
import { apiRoutes } from '../routes.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});

// The cast is safe: routes use their dependencies only while they handle a request.
const routes = apiRoutes({} as never);

/** The keywords of a field's schema. */
interface Field {
  type?: string;
  enum?: string[];
  anyOf?: Field[];
  items?: Field;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  pattern?: string;
  format?: string;
  'x-trimmedLength'?: [min: number, max: number];
}

const fieldsOf = (schema: unknown) => Object.entries((schema as { properties: Record<string, Field> }).properties);

/** Texts that the schema of a string forbids. */
function wrongTexts({ enum: choices, pattern, format, 'x-trimmedLength': length }: Field): string[] {
  return [
    ...(choices === undefined ? [] : ['nothing', '']),
    ...(pattern === undefined ? [] : ['\u0000']),
    ...(format === 'date-time' ? ['x', '2026-01-01', '2026-01-01T00:00:00', '2016-12-31T23:59:60Z'] : []),
    ...(format === 'date' ? ['x', '2026-02-30', '1969-12-31', '2026-1-1'] : []),
    ...(length === undefined ? [] : [' \u3000', 'x'.repeat(length[1] + 1), 'a\u0007b', 'a\u0085b', 'a\u009fb']),
  ];
}

/** Values of a body that a schema forbids. */
function wrongValues(schema: Field): unknown[] {
  const { type, anyOf, items, minimum = 0, maximum = 0, minItems = 0, maxItems = 0 } = schema;
  if (anyOf !== undefined) return wrongValues(anyOf[0]!).filter((value) => value !== null);
  switch (type) {
    case 'string':
      return [null, 1, ...wrongTexts(schema)];
    case 'integer':
      return [null, String(minimum), minimum - 1, minimum + 0.5, maximum + 1];
    case 'array': {
      const item = exampleOf(items);
      const many = (length: number) => Array.from({ length }, () => item);
      return [null, 'x', many(maxItems + 1), many(2), [1], ...(minItems === 0 ? [] : [[]])];
    }
    case 'boolean':
      return [null, 'yes', 1];
    default:
      // Any JSON value is allowed where the schema has no type.
      return type === undefined ? [] : [null, 'x', []];
  }
}

const filled = (path: string) => path.replace(/\{\w+\}/g, 'x_0');

describe('a body', () => {
  test.each(routes.filter(({ body }) => body !== undefined).map((route) => [route.operationId, route] as const))(
    'of %s is refused for each field outside of its schema, a missing and an unknown one',
    async (_, { method, path, body: schema }) => {
      const { complete = {} } = bodyExamples(schema);
      const refused = async (name: string, body: object) => {
        const { status, body: answer } = await api.call(method, filled(path), { body });
        const named = (answer.error.details as { path: string }[]).some((it) => it.path.startsWith(`body.${name}`));
        expect([body, status, named]).toEqual([body, 400, true]);
      };
      for (const [name, field] of fieldsOf(schema)) {
        for (const value of wrongValues(field)) await refused(name, { ...complete, [name]: value });
      }
      for (const name of (schema as { required?: string[] }).required ?? []) {
        const { [name as never]: __, ...others } = complete;
        await refused(name, others);
      }
      await refused('unknown', { ...complete, unknown: 1 });
    },
  );
});

/** Values of a query parameter that a schema forbids. */
function wrongParameters(schema: Field): string[] {
  const { type, minimum = 0, maximum = 0 } = schema;
  return type === 'integer' ? [`${minimum - 1}`, `${maximum + 1}`, 'ten', '1e1', ''] : wrongTexts(schema);
}

describe('a query', () => {
  test.each(routes.filter(({ query }) => query !== undefined).map((route) => [route.operationId, route] as const))(
    'of %s is refused for each parameter outside of its schema, and a repeated one',
    async (_, { method, path, query: schema }) => {
      const required = Object.entries(exampleOf(schema) as Record<string, string>);
      for (const [name, field] of fieldsOf(schema)) {
        const others = required.filter(([other]) => other !== name);
        const given = String(exampleOf(field, name));
        for (const values of [...wrongParameters(field).map((value) => [value]), [given, given]]) {
          const query = new URLSearchParams([...others, ...values.map((value): [string, string] => [name, value])]);
          const { status, body } = await api.call(method, `${filled(path)}?${query.toString()}`, { body: {} });
          expect([name, values, status, body.error.details[0].path]).toEqual([name, values, 400, `query.${name}`]);
        }
      }
    },
  );
});

test('the schemas are valid JSON Schema, which the API does not check at its start', () => {
  const ajv = new Ajv2020();
  for (const { params, query, body, list } of routes) {
    for (const schema of [params, query, body, list?.position].filter((each) => each !== undefined)) {
      expect([ajv.validateSchema(schema), ajv.errors]).toEqual([true, null]);
    }
  }
});
