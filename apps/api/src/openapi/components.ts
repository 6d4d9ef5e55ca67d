import { ERROR_TABLE, type ErrorCode, REQUEST_ID_PATTERN } from '@callplane/core';
import { Type } from 'typebox';
import type { Route } from '../http/route.js';
import { errorExample } from './examples.js';
import { namedObject, strictObject } from '../http/schemas.js';

type Json = Record<string, unknown>;

const COMPONENTS = '#/components/schemas/';

/**
 * Collects the schemas of the document. A schema with a title becomes a component, and every use refers to it. A schema
 * without a title is inlined.
 */
export class SchemaComponents {
  readonly #schemas = new Map<string, Json>();

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

/** Every response header that a caller can use, keyed by its component name. */
const HEADERS = {
  RequestId: {
    name: 'x-request-id',
    required: true,
    description: 'Identifies the request in logs. The server keeps a well-formed `x-request-id` of the request.',
    schema: { type: 'string', pattern: REQUEST_ID_PATTERN.source },
  },
  RetryAfter: {
    name: 'retry-after',
    required: true,
    description: 'Seconds to wait before sending the request again.',
    schema: { type: 'integer', minimum: 1 },
  },
  WwwAuthenticate: {
    name: 'www-authenticate',
    required: true,
    description: 'The authentication scheme.',
    schema: { type: 'string', const: 'Bearer' },
  },
  Allow: {
    name: 'allow',
    required: true,
    description: 'The methods that the path accepts.',
    schema: { type: 'string' },
  },
  IdempotencyReplayed: {
    name: 'idempotency-replayed',
    required: false,
    description: 'Present if the server repeats the first response for the same `Idempotency-Key`.',
    schema: { type: 'string', const: 'true' },
  },
  PreferenceApplied: {
    name: 'preference-applied',
    required: false,
    description: 'The preference that the server applied (RFC 7240).',
    schema: { type: 'string' },
  },
  RateLimit: {
    name: 'ratelimit',
    required: false,
    description:
      'Requests left in the rate limit, and seconds until the limit is full again ' +
      '(draft-ietf-httpapi-ratelimit-headers-10). Absent if no limit is configured.',
    schema: { type: 'string' },
  },
  RateLimitPolicy: {
    name: 'ratelimit-policy',
    required: false,
    description: 'The rate limit: requests (`q`) per window in seconds (`w`).',
    schema: { type: 'string' },
  },
  SetCookie: {
    name: 'set-cookie',
    required: true,
    description: 'The cookie of the console session: `HttpOnly`, `SameSite=Strict`, over https also `Secure`.',
    schema: { type: 'string' },
  },
  JwksCacheControl: {
    name: 'cache-control',
    required: true,
    description: 'How long a verifier may cache the keys.',
    schema: { type: 'string' },
  },
} as const;

type HeaderName = keyof typeof HEADERS;

const RATE_LIMIT_HEADERS: readonly HeaderName[] = ['RateLimit', 'RateLimitPolicy'];

export const HEADER_COMPONENTS = Object.fromEntries(
  Object.entries(HEADERS).map(([component, { name: _name, ...header }]) => [component, header]),
);

export function headers(names: readonly HeaderName[]): Record<string, { $ref: string }> {
  return Object.fromEntries(
    names.map((component) => [HEADERS[component].name, { $ref: `#/components/headers/${component}` }]),
  );
}

/** The headers of an answer of this route with this status. */
export function headersOf(route: Route, status: number): HeaderName[] {
  const isLimited = route.rateLimited !== false && status !== 401;
  const isSuccess = status < 300;
  return [
    ...errorHeaders(status),
    ...(isSuccess && route.idempotent === true ? (['IdempotencyReplayed'] as const) : []),
    ...(isSuccess && route.prefers === true ? (['PreferenceApplied'] as const) : []),
    ...(isSuccess && route.setsCookie === true ? (['SetCookie'] as const) : []),
    ...(isLimited ? RATE_LIMIT_HEADERS : []),
  ];
}

/** The headers of every answer with this status, whatever the route. */
function errorHeaders(status: number): HeaderName[] {
  return [
    'RequestId',
    ...(status === 401 ? (['WwwAuthenticate'] as const) : []),
    ...(status === 405 ? (['Allow'] as const) : []),
    ...(status === 429 || status === 503 ? (['RetryAfter'] as const) : []),
  ];
}

/** Errors that every route may answer. */
const ALWAYS: readonly ErrorCode[] = ['UNAUTHENTICATED', 'INTERNAL', 'UNAVAILABLE'];

const ErrorSchema = namedObject('Error', {
  error: strictObject({
    code: Type.String({
      enum: Object.keys(ERROR_TABLE),
      description: 'Error code for programs. See docs/errors.md.',
    }),
    message: Type.String({ description: 'Error message for people. The text may change.' }),
    requestId: Type.String({ description: 'The value of the `x-request-id` header.' }),
    details: Type.Optional(
      Type.Array(
        Type.Object({
          path: Type.String({ description: 'E.g. `body.name`, `path.roomId`, `query.limit`.' }),
          message: Type.String(),
        }),
        { description: 'Every failure that belongs to a part of the request.' },
      ),
    ),
  }),
});

function errorCodesOf(route: Route): ErrorCode[] {
  return [
    ...ALWAYS,
    ...(route.rateLimited === false ? [] : (['RATE_LIMITED'] as const)),
    ...(route.scope === null ? [] : (['INSUFFICIENT_SCOPE'] as const)),
    'CROSS_SITE_REQUEST',
    // A route without a body schema rejects a body, so it has these errors too.
    ...(route.ignoresBody === true
      ? []
      : (['VALIDATION_FAILED', 'MALFORMED_JSON', 'PAYLOAD_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE'] as const)),
    ...(route.idempotent === true ? (['IDEMPOTENCY_CONFLICT', 'IDEMPOTENCY_KEY_REUSED'] as const) : []),
    ...(route.errors ?? []),
  ];
}

/** Collects the error responses. Responses that several operations share become one component. */
export class FailureComponents {
  readonly #schemas: SchemaComponents;
  readonly #responses = new Map<string, Json>();

  constructor(schemas: SchemaComponents) {
    this.#schemas = schemas;
  }

  ofRoute(route: Route): Json {
    const byStatus = new Map<number, ErrorCode[]>();
    for (const code of errorCodesOf(route)) {
      const { status } = ERROR_TABLE[code];
      byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
    }
    return Object.fromEntries(
      [...byStatus].map(([status, codes]) => [status, this.#refer(codes, headersOf(route, status))]),
    );
  }

  /**
   * The response of an error outside the documented routes.
   * @param isLimited whether the error comes from under `/v1`, behind the rate limit.
   */
  refer(code: ErrorCode, isLimited: boolean): Json {
    const sent = errorHeaders(ERROR_TABLE[code].status);
    return this.#refer([code], isLimited ? [...sent, ...RATE_LIMIT_HEADERS] : sent);
  }

  /** All components, sorted by name. */
  all(): Json {
    return Object.fromEntries([...this.#responses].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  #refer(codes: readonly ErrorCode[], sent: readonly HeaderName[]): Json {
    const isUnlimited = !sent.includes('RateLimit') && !codes.includes('UNAUTHENTICATED');
    const name = codes.map(pascalCase).join('Or') + (isUnlimited ? 'WithoutRateLimit' : '');
    if (!this.#responses.has(name)) this.#responses.set(name, this.#response(codes, sent));
    return { $ref: `#/components/responses/${name}` };
  }

  #response(codes: readonly ErrorCode[], sent: readonly HeaderName[]): Json {
    const examples = codes.map((code) => [code, { value: errorExample(code, ERROR_TABLE[code].message) }]);
    return {
      description: codes.map((code) => `\`${code}\`: ${ERROR_TABLE[code].message}`).join('\n\n'),
      headers: headers(sent),
      content: {
        'application/json': {
          // The codes of the answer are in its description and its examples. With a schema of its own for each answer,
          // generators write hundreds of classes.
          schema: this.#schemas.refer(ErrorSchema),
          examples: Object.fromEntries(examples) as Json,
        },
      },
    };
  }
}

/** `ROOM_NOT_FOUND` → `RoomNotFound` */
function pascalCase(code: ErrorCode): string {
  return code
    .split('_')
    .map((word) => word.charAt(0) + word.slice(1).toLowerCase())
    .join('');
}
