import { describe, expect, test } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { apiRoutes } from '../routes.js';
import { cursorsOf } from './cursor.js';
import { PartValidator } from './validate.js';

describe('the schemas of the API', () => {
  // The cast is safe: routes use their dependencies only while they handle a request.
  const routes = apiRoutes({} as never);
  const schemas = routes.flatMap(({ params, query, body }) =>
    [params, query, body].filter((schema) => schema !== undefined),
  );

  test('compile, which the API does only with the first request of each route', () => {
    expect(schemas.length).toBeGreaterThan(40);
    for (const schema of schemas) expect(() => new PartValidator('body', schema).failures({})).not.toThrow();
  });

  test('are valid JSON Schema, which the API does not check at its start', () => {
    const ajv = new Ajv2020();
    const lists = routes.flatMap(({ list }) => (list === undefined ? [] : [list]));
    for (const list of lists) expect(() => cursorsOf(list)).not.toThrow();
    for (const schema of [...schemas, ...lists.map(({ position }) => position)]) {
      expect([ajv.validateSchema(schema), ajv.errors]).toEqual([true, null]);
    }
  });
});
