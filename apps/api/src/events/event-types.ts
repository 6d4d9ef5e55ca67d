import { EVENT_TEXTS, EVENT_TYPES } from '@callplane/core';
import { Type, type TSchema } from 'typebox';
import { namedObject, oneOf } from '../http/schemas.js';
import { exampleOf } from '../openapi/examples.js';
import { eventSchema } from './events.schemas.js';

const anyObject = (description: string) =>
  Type.Unsafe<Record<string, unknown>>({ type: 'object', additionalProperties: true, description });

export const EventTypesSchema = namedObject('EventTypes', {
  data: Type.Array(
    namedObject('EventTypeDescription', {
      type: oneOf(EVENT_TYPES),
      description: Type.String({ description: 'When the event happens.' }),
      schema: anyObject('JSON Schema (2020-12) of the body, without references. Later versions may add fields.'),
      example: anyObject('A body that matches the schema.'),
    }),
  ),
  nextCursor: Type.Null({ description: 'Always null: one page has all types.' }),
});

/** All event types. The answer of the API and the table of the documents come from it. */
export function eventTypes() {
  const data = EVENT_TYPES.map((type) => {
    const schema = eventSchema(type);
    return { type, description: EVENT_TEXTS[type], schema: standalone(schema), example: exampleOf(schema) };
  });
  return { data, nextCursor: null };
}

/** A schema that admits the fields of later versions, and has only standard keywords. */
function standalone(schema: TSchema): Record<string, unknown> {
  const text = JSON.stringify(schema, (_key, value: unknown) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    const { additionalProperties, 'x-document': documented, ...rest } = value as Record<string, unknown>;
    const isStrict = additionalProperties === undefined || additionalProperties === false;
    return { ...rest, ...(isStrict ? {} : { additionalProperties }), ...(documented as object | undefined) };
  });
  return { $schema: 'https://json-schema.org/draft/2020-12/schema', ...(JSON.parse(text) as object) };
}
