import {
  codePointLength,
  controlReason,
  cutToSchema,
  describeSchemaFailures,
  formatPath,
  isAcceptedTime,
  metadataSizeFailure,
  parseDay,
  parseJsonBody,
  PublicError,
  storedJsonBytes,
  trimName,
  trimUnicode,
  unknownName,
  type ErrorDetail,
} from '@callplane/core';
import type { SchemaValidateFunction, ValidateFunction } from 'ajv';
import formats from 'ajv-formats';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { Request } from 'express';
import type { TSchema } from 'typebox';

const ajv = new Ajv2020({
  allErrors: true,
  // Errors then carry the schema, which says what an array must contain, and which fields an object may have.
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
const { validate: isDateTime } = formats.default.get('date-time') as { validate: (text: string) => boolean };
// The format of ajv accepts a leap second (23:59:60), which `Date` cannot parse.
ajv.addFormat('date-time', (text: string) => isDateTime(text) && isAcceptedTime(new Date(text)));
ajv.addFormat('date', (text: string) => parseDay(text) !== null);
ajv.addKeyword({
  keyword: 'x-trimmedLength',
  type: 'string',
  schemaType: 'array',
  modifying: true,
  errors: true,
  validate: trimAndMeasure(),
});

// `x-document` holds keywords for the OpenAPI document only; openapi/components.ts merges them into the schema. The
// server checks the trimmed or parsed value instead, so they must not take part in validation.
ajv.addKeyword({ keyword: 'x-document', schemaType: 'object' });

function trimAndMeasure(): SchemaValidateFunction {
  const validate: SchemaValidateFunction = ([min, max]: [number, number], text: string, _schema, context) => {
    const trimmed = trimName(text);
    const message = lengthFailure(text, codePointLength(trimmed), { min, max }) ?? controlReason(trimmed);
    if (message !== null) {
      validate.errors = [{ keyword: 'x-trimmedLength', params: {}, message }];
      return false;
    }
    if (context !== undefined)
      (context.parentData as Record<string, unknown>)[String(context.parentDataProperty)] = trimmed;
    return true;
  };
  return validate;
}

function lengthFailure(text: string, length: number, { min, max }: { min: number; max: number }): string | null {
  if (length >= min && length <= max) return null;
  const isInvisible = length === 0 && trimUnicode(text) !== '';
  if (isInvisible) return 'must have a visible character';
  return `must have ${min} to ${max} characters after trimming, not ${length}`;
}

/** Validates one part of a request (`path`, `query`, `headers` or `body`) against its schema. */
export class PartValidator {
  /** Compiled for the first value: compiling the schemas of all routes takes 0.1 s, which no start waits for. */
  #compiled: ValidateFunction | undefined;

  constructor(
    private readonly part: string,
    private readonly schema: TSchema,
  ) {}

  /**
   * Returns the failures of this part, limited in number. Trims a valid value in place where the schema requires it.
   */
  failures(value: unknown): ErrorDetail[] {
    const validate = (this.#compiled ??= ajv.compile(this.schema));
    if (validate(cutToSchema(this.schema, value))) return [];
    return describeSchemaFailures(this.part, validate.errors ?? []);
  }

  /** Parses the whole numbers of a query. Adds a failure for each parameter that the schema does not name. */
  readQuery(raw: Record<string, unknown>, details: ErrorDetail[]): Record<string, unknown> {
    const { properties } = this.schema as unknown as { properties: Record<string, { type?: string }> };
    const query: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(raw)) {
      const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
      if (property === undefined) {
        details.push({ path: formatPath(this.part, [name]), message: unknownName('parameter', name, properties) });
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

const BODY_BYTES_MAX = 64 * 1024;

export interface ParsedBody {
  value: unknown;
  details: ErrorDetail[];
}

/**
 * Reads and parses a JSON body. Checks in this order: the media type, the size, the syntax, the size of the metadata.
 * @throws PublicError UNSUPPORTED_MEDIA_TYPE, PAYLOAD_TOO_LARGE, MALFORMED_JSON
 */
export async function readJsonBody(request: Request): Promise<ParsedBody> {
  const length = request.headers['content-length'];
  const hasBody = request.headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
  const bytes = hasBody ? await readBytes(request, Number(length ?? 0)) : NO_BYTES;
  if (bytes.length === 0) return { value: undefined, details: [] };
  const parsed = parseJsonBody(decodeUtf8(bytes));
  if (!parsed.ok) throw malformed(`The request body is not valid JSON: ${parsed.problem}.`);
  const tooLarge = metadataSizeFailure(bytesOfMetadata(parsed.value));
  if (tooLarge !== null) {
    throw new PublicError('PAYLOAD_TOO_LARGE', {
      message: 'The metadata is too large.',
      details: [{ path: 'body.metadata', message: tooLarge }],
    });
  }
  return { value: parsed.value, details: parsed.details };
}

const NO_BYTES = Buffer.alloc(0);

function malformed(message: string): PublicError {
  return new PublicError('MALFORMED_JSON', { message });
}

function isUtf8Json(request: Request): boolean {
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') return false;
  const [type = '', ...parameters] = (request.headers['content-type'] ?? '').toLowerCase().split(';');
  if (type.trim() !== 'application/json') return false;
  const charset = parameters
    .map((parameter) => /^\s*charset\s*=\s*"?([^"\s]+)"?\s*$/.exec(parameter)?.[1])
    .find((c) => c !== undefined);
  return charset === undefined || charset === 'utf-8' || charset === 'utf8';
}

/** @param announced its size as the caller says; 0 for a body in chunks, which may turn out to be empty. */
function readBytes(request: Request, announced: number): Promise<Buffer> {
  const isJson = isUtf8Json(request);
  if (announced > 0 && !isJson) return Promise.reject(new PublicError('UNSUPPORTED_MEDIA_TYPE'));
  if (announced > BODY_BYTES_MAX) return Promise.reject(tooLarge());
  const chunks: Buffer[] = [];
  let size = 0;
  return new Promise((resolve, reject) => {
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (isJson && size <= BODY_BYTES_MAX) {
        chunks.push(chunk);
        return;
      }
      request.removeAllListeners('data');
      // Without a listener, the rest of a body of another type is read and dropped, so that the connection can be reused.
      if (isJson) request.pause();
      reject(isJson ? tooLarge() : new PublicError('UNSUPPORTED_MEDIA_TYPE'));
    });
    request.on('end', () => resolve(Buffer.concat(chunks)));
    request.on('error', reject);
    request.on('close', () => {
      // Create the error only if it is needed: capturing its stack costs more than reading a small body.
      if (!request.complete) reject(malformed('The request was aborted.'));
    });
  });
}

function tooLarge(): PublicError {
  return new PublicError('PAYLOAD_TOO_LARGE', {
    message: `The request body is larger than ${BODY_BYTES_MAX} bytes.`,
    // Close the connection instead of reading the rest of the body.
    headers: { connection: 'close' },
  });
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** @throws PublicError MALFORMED_JSON */
function decodeUtf8(bytes: Buffer): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw malformed('The request body is not UTF-8.');
  }
}

/** Size of the body's `metadata`, serialised as a read returns it, in bytes. 0 without metadata. */
function bytesOfMetadata(body: unknown): number {
  if (typeof body !== 'object' || body === null || !Object.hasOwn(body, 'metadata')) return 0;
  return storedJsonBytes((body as { metadata: unknown }).metadata);
}
