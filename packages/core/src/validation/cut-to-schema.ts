import { ERROR_DETAILS_MAX } from '../errors/details.js';

/** The JSON schema keywords that this file uses. */
interface SchemaParts {
  properties?: Record<string, object>;
  additionalProperties?: unknown;
  items?: object;
  maxItems?: number;
}

/**
 * Returns the value, or a smaller one that breaks the same rules. Ajv with `allErrors` creates an error object for
 * every wrong item and every unknown field: 15,000 bad permissions would cost megabytes to report twenty. So an array
 * that is too long keeps one item more than its maximum, and twenty unknown fields are kept.
 *
 * A valid value is returned as it is, so that a validator may still change it in place.
 */
export function cutToSchema(schema: object, value: unknown): unknown {
  return new Cutting().cut(schema, value);
}

class Cutting {
  #unknownLeft = ERROR_DETAILS_MAX;

  cut(schema: SchemaParts, value: unknown): unknown {
    if (Array.isArray(value)) return this.#array(schema, value as unknown[]);
    if (typeof value === 'object' && value !== null) return this.#object(schema, value as Record<string, unknown>);
    return value;
  }

  #array({ items, maxItems = Infinity }: SchemaParts, value: unknown[]): unknown[] {
    const kept = value.length > maxItems ? value.slice(0, maxItems + 1) : value;
    if (items === undefined) return kept;
    const cut = kept.map((item) => this.cut(items, item));
    return cut.every((item, index) => item === kept[index]) ? kept : cut;
  }

  #object({ properties, additionalProperties }: SchemaParts, value: Record<string, unknown>): Record<string, unknown> {
    if (properties === undefined || additionalProperties !== false) return value;
    const entries: [string, unknown][] = [];
    let isCut = false;
    for (const key of Object.keys(value)) {
      const known = Object.hasOwn(properties, key) ? properties[key] : undefined;
      if (known === undefined && this.#unknownLeft-- <= 0) {
        isCut = true;
        continue;
      }
      const item = known === undefined ? value[key] : this.cut(known, value[key]);
      isCut ||= item !== value[key];
      entries.push([key, item]);
    }
    // fromEntries defines properties, so a key named __proto__ stays data.
    return isCut ? Object.fromEntries(entries) : value;
  }
}
