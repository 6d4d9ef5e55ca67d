import {
  codePointLength,
  cutToSchema,
  describeSchemaFailure,
  formatPath,
  PublicError,
  trimName,
  trimUnicode,
  type ErrorDetail,
} from '@callplane/core';
import type { ErrorObject, SchemaValidateFunction, ValidateFunction } from 'ajv';
import formats from 'ajv-formats';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { TSchema } from 'typebox';

const ajv = new Ajv2020({
  allErrors: true,
  // Errors then carry the schema, which says what an array must contain.
  verbose: true,
  strict: true,
  strictTypes: false,
  strictRequired: false,
  ownProperties: true,
  // A test checks the schemas. Ajv's own check would compile the schema of schemas, in 0.25 s of each start (measured).
  validateSchema: false,
  meta: false,
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

// `x-document` holds keywords for the OpenAPI document only; openapi/references.ts merges them into the schema. The
// server checks the trimmed or parsed value instead, so they must not take part in validation.
ajv.addKeyword({ keyword: 'x-document', schemaType: 'object' });

/** Trims a string in place and checks its length in code points. */
function trimAndMeasure(): SchemaValidateFunction {
  const validate: SchemaValidateFunction = ([min, max]: [number, number], text: string, _schema, context) => {
    const trimmed = trimName(text);
    const length = codePointLength(trimmed);
    if (length < min || length > max) {
      const isInvisible = length === 0 && trimUnicode(text) !== '';
      validate.errors = [
        {
          keyword: 'x-trimmedLength',
          params: {},
          message: isInvisible
            ? 'must have a visible character'
            : `must have ${min} to ${max} characters after trimming, not ${length}`,
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

/** Validates one part of a request (`path`, `query`, `headers` or `body`) against its schema. */
export class PartValidator {
  readonly #part: string;
  readonly #schema: TSchema;
  /** Compiled for the first value: compiling the schemas of all routes takes 0.1 s, which no start waits for. */
  #compiled: ValidateFunction | undefined;

  constructor(part: string, schema: TSchema) {
    this.#part = part;
    this.#schema = schema;
  }

  /**
   * Returns the failures of this part, limited in number. Trims a valid value in place where the schema requires it.
   */
  failures(value: unknown): ErrorDetail[] {
    const validate = (this.#compiled ??= ajv.compile(this.#schema));
    if (validate(cutToSchema(this.#schema, value))) return [];
    return (validate.errors ?? []).filter(isReported).map((error) => describeSchemaFailure(this.#part, error));
  }

  /** Parses the whole numbers of a query. Adds a failure for each parameter that the schema does not name. */
  readQuery(raw: Record<string, unknown>, details: ErrorDetail[]): Record<string, unknown> {
    const { properties } = this.#schema as unknown as { properties: Record<string, { type?: string }> };
    const query: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(raw)) {
      const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
      if (property === undefined) {
        details.push({ path: formatPath(this.#part, [name]), message: 'is not a known parameter' });
        continue;
      }
      const isNumber = property.type === 'integer' && typeof value === 'string' && /^-?\d{1,9}$/.test(value);
      query[name] = isNumber ? Number(value) : value;
    }
    return query;
  }
}

/** @throws PublicError VALIDATION_FAILED with all details, unless the list is empty. */
export function refuseFailures(details: readonly ErrorDetail[]): void {
  if (details.length > 0) throw new PublicError('VALIDATION_FAILED', { details });
}

/** Hides the errors of single items under `contains`: the error of `contains` itself already says what is wrong. */
function isReported(error: ErrorObject): boolean {
  return !error.schemaPath.includes('/contains/');
}
