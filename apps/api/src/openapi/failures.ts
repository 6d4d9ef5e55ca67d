import { ERROR_TABLE, type ErrorCode } from '@callplane/core';
import { Type } from 'typebox';
import type { Route } from '../http/route.js';
import { errorExample } from './examples.js';
import { errorHeaders, headers, headersOf, RATE_LIMIT_HEADERS, type HeaderName } from './headers.js';
import type { SchemaComponents } from './references.js';

type Json = Record<string, unknown>;

/** Errors that every route may answer. */
const ALWAYS: readonly ErrorCode[] = ['UNAUTHENTICATED', 'INTERNAL', 'UNAVAILABLE'];

const ErrorSchema = Type.Object(
  {
    error: Type.Object(
      {
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
      },
      { additionalProperties: false },
    ),
  },
  { title: 'Error', additionalProperties: false },
);

/** The error codes that a route may answer. */
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

  /** The error responses of a route, by status. */
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
          schema: {
            allOf: [
              this.#schemas.refer(ErrorSchema),
              { properties: { error: { properties: { code: { enum: codes } } } } },
            ],
          },
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
