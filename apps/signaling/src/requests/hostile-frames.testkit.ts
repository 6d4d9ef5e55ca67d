import { CLIENT_MESSAGES } from '@callplane/protocol';
import fc from 'fast-check';

/** The parts of a message schema that decide its values. */
interface Schema {
  type?: string;
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  minimum?: number;
  maximum?: number;
  maxLength?: number;
}

const hostile = fc.oneof(
  fc.constantFrom<unknown>(null, '', '\u0000', '\ud800', '__proto__', -1, -0, 1e308, 2 ** 31, 2 ** 53, [], {}, [[]]),
  fc.jsonValue({ maxDepth: 3 }),
);

/**
 * Messages of every type of the protocol, from its schemas. Most fields have a value of the right type, so that some
 * messages reach their handlers.
 * @param words ids that may mean something to the gateway
 */
export function hostileMessages(words: readonly string[]): fc.Arbitrary<unknown> {
  const fieldOf = (schema: Schema): fc.Arbitrary<unknown> =>
    fc.oneof({ weight: 8, arbitrary: valueOf(schema) }, { weight: 1, arbitrary: hostile });

  const recordOf = (properties: Record<string, Schema>): fc.Arbitrary<unknown> =>
    fc.record(Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, fieldOf(schema)])), {
      requiredKeys: [],
    });

  const valueOf = (schema: Schema): fc.Arbitrary<unknown> => {
    if (schema.const !== undefined) return fc.constant(schema.const);
    if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
    if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map(valueOf));
    switch (schema.type) {
      case 'boolean':
        return fc.boolean();
      case 'integer':
      case 'number':
        return fc.constantFrom(schema.minimum ?? 0, schema.maximum ?? 2 ** 53, 1);
      case 'string':
        return fc.oneof(fc.constantFrom(...words), fc.string({ maxLength: Math.min(schema.maxLength ?? 30, 30) }));
      case 'array':
        return fc.array(fieldOf(schema.items ?? {}), { minLength: 1, maxLength: 3 });
      case 'object':
        return recordOf(schema.properties ?? {});
      default:
        return fc.jsonValue();
    }
  };

  const messages = Object.entries(CLIENT_MESSAGES as Record<string, Schema>).map(([type, { properties = {} }]) =>
    recordOf(properties).map((fields) => ({ ...(fields as object), type })),
  );
  return fc.oneof(...messages);
}
