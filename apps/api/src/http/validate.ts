import { codePointLength, PublicError, trimUnicode, unstorableReason, type ErrorDetail } from '@callplane/core';
import type { ErrorObject, SchemaValidateFunction, ValidateFunction } from 'ajv';
import formats from 'ajv-formats';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { TSchema } from 'typebox';
import { isCursor } from './cursor.js';

const ajv = new Ajv2020({
  allErrors: true,
  strict: true,
  strictTypes: false,
  strictRequired: false,
  ownProperties: true,
});
formats.default(ajv);
ajv.addKeyword({
  keyword: 'x-trimmedLength',
  type: 'string',
  schemaType: 'array',
  modifying: true,
  errors: true,
  validate: trimAndMeasure(),
});

ajv.addKeyword({
  keyword: 'x-cursor',
  type: 'string',
  schemaType: 'string',
  validate: (list: string, cursor: string) => isCursor(list, cursor),
});

/** Trims a text in place and counts its code points. */
function trimAndMeasure(): SchemaValidateFunction {
  const validate: SchemaValidateFunction = ([min, max]: [number, number], text: string, _schema, context) => {
    const trimmed = trimUnicode(text);
    const length = codePointLength(trimmed);
    if (length < min || length > max) {
      validate.errors = [
        {
          keyword: 'x-trimmedLength',
          params: {},
          message: `must have ${min} to ${max} characters after trimming, not ${length}`,
        },
      ];
      return false;
    }
    if (context !== undefined)
      (context.parentData as Record<string, unknown>)[String(context.parentDataProperty)] = trimmed;
    return true;
  };
  return validate;
}

/** One part of a request (`path`, `query`, `headers` or `body`) and the schema that it must match. */
export class PartValidator {
  readonly #part: string;
  readonly #schema: TSchema;
  readonly #validate: ValidateFunction;

  constructor(part: string, schema: TSchema) {
    this.#part = part;
    this.#schema = schema;
    this.#validate = ajv.compile(schema);
  }

  /** Every failure of this part. The value is trimmed in place where the schema says so. */
  failures(value: unknown): ErrorDetail[] {
    if (this.#validate(value)) return [];
    return (this.#validate.errors ?? []).filter(isTold).map((error) => ({
      path: this.#part + dotted(error),
      message: inWords(error),
    }));
  }

  /** Of raw query parameters those that the schema names, whole numbers read as such. Others are ignored. */
  readQuery(raw: Record<string, unknown>): Record<string, unknown> {
    const { properties } = this.#schema as unknown as { properties: Record<string, { type?: string }> };
    const query: Record<string, unknown> = {};
    for (const [name, { type }] of Object.entries(properties)) {
      if (!Object.hasOwn(raw, name)) continue;
      const value = raw[name];
      query[name] =
        type === 'integer' && typeof value === 'string' && /^-?\d{1,9}$/.test(value) ? Number(value) : value;
    }
    return query;
  }
}

/** @throws PublicError VALIDATION_FAILED with all of them, when there are any. */
export function refuseFailures(details: readonly ErrorDetail[]): void {
  if (details.length > 0) throw new PublicError('VALIDATION_FAILED', { details });
}

/** Text that PostgreSQL cannot hold, in parts other than the body (whose parser finds it). */
export function unstorable(path: string, value: unknown): ErrorDetail[] {
  const reason = typeof value === 'string' ? unstorableReason(value) : null;
  return reason === null ? [] : [{ path, message: reason }];
}

/** What `contains` reports for each item says nothing beside `contains` itself. */
function isTold(error: ErrorObject): boolean {
  return !error.schemaPath.includes('/contains/');
}

/** `/permissions/0` → `.permissions[0]`; a missing or unknown field is named by itself. */
function dotted(error: ErrorObject): string {
  const path = error.instancePath
    .split('/')
    .slice(1)
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((segment) => (/^\d+$/.test(segment) ? `[${segment}]` : `.${segment}`))
    .join('');
  const { missingProperty, additionalProperty } = error.params as Record<string, string | undefined>;
  const field = missingProperty ?? additionalProperty;
  return field === undefined ? path : `${path}.${field}`;
}

function inWords(error: ErrorObject): string {
  const params = error.params as Record<string, unknown>;
  switch (error.keyword) {
    case 'required':
      return 'is required';
    case 'additionalProperties':
      return 'is not a known field';
    case 'type':
      return `must be ${article(String(params['type']))}`;
    case 'enum':
      return `must be one of ${(params['allowedValues'] as string[]).join(', ')}`;
    case 'minimum':
      return `must be at least ${String(params['limit'])}`;
    case 'maximum':
      return `must be at most ${String(params['limit'])}`;
    case 'minLength':
      return `must have at least ${String(params['limit'])} characters`;
    case 'maxLength':
      return `must have at most ${String(params['limit'])} characters`;
    case 'minItems':
      return `must have at least ${String(params['limit'])} entries`;
    case 'uniqueItems':
      return 'must not name the same entry twice';
    case 'format':
      return error.params['format'] === 'date-time'
        ? 'must be an ISO 8601 time with its zone, like 2026-11-20T22:35:43.500Z'
        : (error.message ?? 'is not valid');
    case 'dependentRequired':
      return `is required together with ${String(params['property'])}`;
    case 'x-cursor':
      return 'is not a cursor of this list';
    case 'contains':
      return 'must include room:join';
    case 'pattern':
      return `must match ${String(params['pattern'])}`;
    default:
      return error.message ?? 'is not valid';
  }
}

function article(type: string): string {
  return /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`;
}
