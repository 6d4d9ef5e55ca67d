import { ERROR_TABLE, type ErrorCode, REQUEST_ID_PATTERN } from '@callplane/core';
import { Type } from 'typebox';
import { notFoundCodes } from '../http/id-fields.js';
import type { Route } from '../http/route.js';
import { errorExample } from './examples.js';
import { namedObject, strictObject } from '../http/schemas.js';

type Json = Record<string, unknown>;

const COMPONENTS = '#/components/schemas/';

/**
 * Collects the components of the document. A schema with a title becomes a component, and every use refers to it. A
 * schema without a title is inlined. Error responses that several operations share become one component.
 */
export class Components {
  readonly #schemas = new Map<string, Json>();
  readonly #responses = new Map<string, Json>();

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

  /**
   * The error responses of these codes, by status.
   * @param isLimited whether they come from behind the rate limit.
   */
  failures(codes: readonly ErrorCode[], isLimited: boolean): Json {
    const byStatus = new Map<number, ErrorCode[]>();
    for (const code of codes) {
      const { status } = ERROR_TABLE[code];
      byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
    }
    return Object.fromEntries([...byStatus].map(([status, same]) => [status, this.#failure(status, same, isLimited)]));
  }

  #failure(status: number, codes: readonly ErrorCode[], isLimited: boolean): Json {
    const name = codes.map(pascalCase).join('Or') + (isLimited || status === 401 ? '' : 'WithoutRateLimit');
    if (!this.#responses.has(name)) {
      const examples = codes.map((code) => [code, { value: errorExample(code, ERROR_TABLE[code].message) }]);
      this.#responses.set(name, {
        description: codes.map((code) => `\`${code}\`: ${ERROR_TABLE[code].message}`).join('\n\n'),
        headers: headers(status, isLimited),
        content: {
          'application/json': {
            // The codes of the answer are in its description and its examples. With a schema of its own for each answer,
            // generators write hundreds of classes.
            schema: this.refer(ErrorSchema),
            examples: Object.fromEntries(examples) as Json,
          },
        },
      });
    }
    return { $ref: `#/components/responses/${name}` };
  }

  all(): Json {
    return { headers: HEADER_COMPONENTS, responses: sorted(this.#responses), schemas: sorted(this.#schemas) };
  }
}

function sorted(components: ReadonlyMap<string, Json>): Json {
  return Object.fromEntries([...components].sort(([a], [b]) => (a < b ? -1 : 1)));
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

const text = { type: 'string' };

/** Name, description and schema of every response header that a caller can use, by the name of its component. */
const HEADERS = {
  RequestId: [
    'x-request-id',
    'Identifies the request in logs. The server keeps a well-formed `x-request-id` of the request.',
    { ...text, pattern: REQUEST_ID_PATTERN.source },
  ],
  RetryAfter: ['retry-after', 'Seconds to wait before sending the request again.', { type: 'integer', minimum: 1 }],
  WwwAuthenticate: ['www-authenticate', 'The authentication scheme.', { ...text, const: 'Bearer' }],
  Allow: ['allow', 'The methods that the path accepts.', text],
  IdempotencyReplayed: [
    'idempotency-replayed',
    'Present if the server repeats the first response for the same `Idempotency-Key`.',
    { ...text, const: 'true' },
  ],
  PreferenceApplied: ['preference-applied', 'The preference that the server applied (RFC 7240).', text],
  RateLimit: [
    'ratelimit',
    'Requests left in the rate limit, and seconds until the limit is full again ' +
      '(draft-ietf-httpapi-ratelimit-headers-10). Absent if no limit is configured.',
    text,
  ],
  RateLimitPolicy: ['ratelimit-policy', 'The rate limit: requests (`q`) per window in seconds (`w`).', text],
  SetCookie: [
    'set-cookie',
    'The cookie of the console session: `HttpOnly`, `SameSite=Strict`, over https also `Secure`.',
    text,
  ],
  JwksCacheControl: ['cache-control', 'How long a verifier may cache the keys.', text],
} as const;

/** An answer may lack these headers. It has all others that are documented for it. */
const OPTIONAL: readonly string[] = ['IdempotencyReplayed', 'PreferenceApplied', 'RateLimit', 'RateLimitPolicy'];

export type HeaderName = keyof typeof HEADERS;

const HEADER_COMPONENTS = Object.fromEntries(
  Object.entries(HEADERS).map(([component, [, description, schema]]) => [
    component,
    { required: !OPTIONAL.includes(component), description, schema },
  ]),
);

/**
 * The headers of an answer.
 * @param own the headers of its route alone.
 * @param isLimited whether it comes from behind the rate limit.
 */
export function headers(
  status: number,
  isLimited: boolean,
  own: readonly HeaderName[] = [],
): Record<string, { $ref: string }> {
  const names: HeaderName[] = [
    'RequestId',
    ...(status === 401 ? (['WwwAuthenticate'] as const) : []),
    ...(status === 405 ? (['Allow'] as const) : []),
    ...(status === 429 || status === 503 ? (['RetryAfter'] as const) : []),
    ...own,
    ...(isLimited && status !== 401 ? (['RateLimit', 'RateLimitPolicy'] as const) : []),
  ];
  return Object.fromEntries(names.map((name) => [HEADERS[name][0], { $ref: `#/components/headers/${name}` }]));
}

/** Errors that every route may answer. */
const ALWAYS: readonly ErrorCode[] = [
  ...(['UNAUTHENTICATED', 'RATE_LIMITED', 'CROSS_SITE_REQUEST', 'INTERNAL', 'UNAVAILABLE'] as const),
  // A route without a body schema rejects a body, so it has these errors too.
  ...(['VALIDATION_FAILED', 'MALFORMED_JSON', 'PAYLOAD_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE'] as const),
];

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

export function errorCodesOf(route: Route): ErrorCode[] {
  const codes: ErrorCode[] = [
    ...(route.scope === null ? [] : (['INSUFFICIENT_SCOPE'] as const)),
    ...ALWAYS,
    ...(route.idempotent === true ? (['IDEMPOTENCY_CONFLICT', 'IDEMPOTENCY_KEY_REUSED'] as const) : []),
    ...notFoundCodes(route.path),
    ...(route.errors ?? []),
  ];
  return [...new Set(codes)];
}

/** `ROOM_NOT_FOUND` → `RoomNotFound` */
function pascalCase(code: ErrorCode): string {
  return code
    .split('_')
    .map((word) => word.charAt(0) + word.slice(1).toLowerCase())
    .join('');
}
