type Json = Record<string, unknown>;

const COMPONENTS = '#/components/schemas/';

/**
 * Collects the schemas of the document. A schema with a title becomes a component, and every use refers to it. A schema
 * without a title is inlined.
 */
export class SchemaComponents {
  readonly #schemas = new Map<string, Json>();

  /** Converts a schema for the document, as a reference if it has a title. */
  refer(schema: unknown): unknown {
    if (Array.isArray(schema)) return schema.map((item) => this.refer(item));
    if (!isObject(schema)) return schema;
    const { title } = schema;
    if (typeof title !== 'string') return this.inline(schema);
    if (!this.#schemas.has(title)) {
      // Reserve the name before converting the content: a schema may contain itself.
      this.#schemas.set(title, {});
      this.#schemas.set(title, this.inline(schema));
    }
    return { $ref: COMPONENTS + title };
  }

  /**
   * Converts a schema without making it a component. Titled schemas inside it become references. The keywords of
   * `x-document` are merged with the validating ones, because generated clients and the documentation page do not know
   * custom keywords.
   */
  inline({ title: _title, 'x-document': documented, discriminator, ...keywords }: Json): Json {
    const plain = Object.entries(keywords).map(([key, value]) => [
      key,
      key === 'properties' ? this.#referEach(value as Json) : this.refer(value),
    ]);
    return {
      ...(Object.fromEntries(plain) as Json),
      ...(documented as Json | undefined),
      ...(discriminator === undefined ? {} : { discriminator: withMapping(discriminator as Json, keywords['oneOf']) }),
    };
  }

  /** Converts the schema of each property. Keys here are property names, so none of them is treated as a keyword. */
  #referEach(properties: Json): Json {
    return Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, this.refer(schema)]));
  }

  /** All components, sorted by name. */
  all(): Json {
    return Object.fromEntries([...this.#schemas].sort(([a], [b]) => (a < b ? -1 : 1)));
  }
}

/** Adds the schema of each value to a discriminator: generators do not derive the mapping from `const`. */
function withMapping(discriminator: Json, union: unknown): Json {
  const name = String(discriminator['propertyName']);
  const entries = (union as { title: string; properties: Record<string, { const: string }> }[]).map(
    ({ title, properties }) => [properties[name]?.const, COMPONENTS + title],
  );
  return { ...discriminator, mapping: Object.fromEntries(entries) as Json };
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null;
}
