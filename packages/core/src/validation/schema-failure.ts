import { ERROR_DETAILS_MAX, formatPath, pointerSegments, type ErrorDetail } from '../errors/errors.js';
import { nearestOf } from '../text/text.js';

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

export interface SchemaFailure {
  keyword: string;
  schemaPath: string;
  /** JSON pointer to the value. */
  instancePath: string;
  params: Record<string, unknown>;
  message?: string;
  /** The value of the keyword in the schema; only with Ajv's option `verbose`. */
  schema?: unknown;
  /** The schema with the keyword; only with `verbose`. */
  parentSchema?: unknown;
}

/**
 * Describes the failures of a JSON schema for the caller, unknown fields first: a mistyped name is the cause of a missing
 * one. The API and the gateway use the same words.
 * @param root the part of the request, such as `body`; empty for a message of the gateway.
 */
export function describeSchemaFailures(root: string, failures: readonly SchemaFailure[]): ErrorDetail[] {
  const isUnknown = ({ keyword }: SchemaFailure): number => (keyword === 'additionalProperties' ? 1 : 0);
  return failures
    .filter(isReported)
    .sort((a, b) => isUnknown(b) - isUnknown(a))
    .map((failure) => ({ path: formatPath(root, segmentsOf(failure)), message: inWords(failure) }));
}

/** Skips duplicates of nullable values and of `contains`, whose own failures are reported. */
export function isReported({ keyword, params, schemaPath }: SchemaFailure): boolean {
  if (keyword === 'anyOf' || (keyword === 'type' && params['type'] === 'null')) return false;
  return !schemaPath.includes('/contains/');
}

/** `/permissions/0` → `permissions`, 0. For a missing or unknown field, appends the name of the field. */
function segmentsOf({ instancePath, params }: SchemaFailure): (string | number)[] {
  const segments = pointerSegments(instancePath);
  const field = (params['missingProperty'] ?? params['additionalProperty']) as string | undefined;
  return field === undefined ? segments : [...segments, field];
}

const FORMATS: Readonly<Record<string, string>> = {
  date: 'must be a day like 2026-11-20, from 1970 to 9999',
  'date-time': 'must be an ISO 8601 time with a time zone, like 2026-11-20T22:35:43.500Z, from 1970 to 9999',
};

function inWords({ keyword, params, message = 'is not valid', schema, parentSchema }: SchemaFailure): string {
  const param = (name: string): string => String(params[name]);
  switch (keyword) {
    case 'required':
      return 'is required';
    case 'additionalProperties':
      return unknownName('field', param('additionalProperty'), (parentSchema as SchemaParts | undefined)?.properties);
    case 'type':
      return `must be ${article(param('type'))}`;
    case 'enum':
      return `must be one of ${(params['allowedValues'] as string[]).join(', ')}`;
    case 'minimum':
      return `must be at least ${param('limit')}`;
    case 'maximum':
      return `must be at most ${param('limit')}`;
    case 'minLength':
      return `must have at least ${param('limit')} characters`;
    case 'maxLength':
      return `must have at most ${param('limit')} characters`;
    case 'minItems':
      return `must have at least ${param('limit')} entries`;
    case 'maxItems':
      return `must have at most ${param('limit')} entries`;
    case 'uniqueItems':
      return 'must not have duplicate entries';
    case 'format':
      return FORMATS[param('format')] ?? message;
    case 'dependentRequired':
      return `is required together with ${param('property')}`;
    case 'contains':
      return isConst(schema) ? `must include ${String(schema.const)}` : message;
    case 'pattern':
      return `must match ${param('pattern')}`;
    default:
      return message;
  }
}

/** @param known the names that the caller may have meant, as keys */
export function unknownName(what: 'field' | 'parameter' | 'message type', name: string, known: object = {}): string {
  const nearest = nearestOf(name, Object.keys(known));
  return `is not a known ${what}${nearest === undefined ? '' : `; did you mean ${nearest}?`}`;
}

function isConst(schema: unknown): schema is { const: unknown } {
  return typeof schema === 'object' && schema !== null && 'const' in schema;
}

function article(type: string): string {
  return /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`;
}
