import { ERROR_TABLE, type ErrorCode } from '@callplane/core';
import { Type, type TSchema } from 'typebox';
import type { Route } from '../http/route.js';

type Json = Record<string, unknown>;

/** Errors that a route may answer whatever it does. */
const ALWAYS: readonly ErrorCode[] = ['UNAUTHENTICATED', 'INTERNAL', 'UNAVAILABLE'];

const ErrorSchema = Type.Object(
  {
    error: Type.Object(
      {
        code: Type.String({ enum: Object.keys(ERROR_TABLE), description: 'For programs; see docs/errors.md.' }),
        message: Type.String({ description: 'For people; may change.' }),
        requestId: Type.String({ description: 'Equals the `x-request-id` header.' }),
        details: Type.Optional(
          Type.Array(
            Type.Object({
              path: Type.String({ description: 'E.g. `body.name`, `path.roomId`, `query.limit`.' }),
              message: Type.String(),
            }),
            { description: 'Every failure of the request, where there is something to point at.' },
          ),
        ),
      },
      { additionalProperties: false },
    ),
  },
  { title: 'Error', additionalProperties: false },
);

/** Headers that every answer carries. */
const HEADERS = {
  'x-request-id': { description: 'Identifies the request in logs.', required: true, schema: { type: 'string' } },
};

/** The OpenAPI 3.1 document of these routes, made from the schemas that validate them. */
export function openApiDocument(routes: readonly Route[]): Json {
  const components = new Map<string, Json>();
  const paths: Record<string, Json> = {};
  for (const route of routes) {
    paths[route.path] ??= {};
    (paths[route.path] as Json)[route.method] = operation(route, components);
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Callplane',
      version: 'v1',
      description:
        'Self-hosted real-time audio/video calls: rooms, participant tokens, TURN credentials, durable clean-up, signed webhooks.',
    },
    servers: [{ url: '/' }],
    security: [{ apiKey: [] }],
    tags: [...new Set(routes.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: {
        apiKey: { type: 'http', scheme: 'bearer', description: 'An API key: `rtc_sk_…` or `rtc_pk_…`.' },
      },
      schemas: Object.fromEntries([...components].sort(([a], [b]) => (a < b ? -1 : 1))),
    },
  };
}

function operation(route: Route, components: Map<string, Json>): Json {
  const parameters = [
    ...fields(route.params, 'path'),
    ...fields(route.query, 'query'),
    ...(route.idempotent === true
      ? [
          {
            name: 'Idempotency-Key',
            in: 'header',
            required: false,
            description: 'Kept 24 hours: the same key and body give the first answer again.',
            schema: { type: 'string', pattern: '^[\\x20-\\x7e]{1,255}$' },
          },
        ]
      : []),
    ...(route.prefers === true
      ? [
          {
            name: 'Prefer',
            in: 'header',
            required: false,
            description:
              '`wait=N`: wait up to N (at most 10) seconds for completion; `respond-async`: do not wait (RFC 7240).',
            schema: { type: 'string' },
          },
        ]
      : []),
  ];
  return {
    operationId: route.operationId,
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    tags: [route.tag],
    ...(route.scope === null ? {} : { 'x-scope': route.scope }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(route.body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: { 'application/json': { schema: reference(route.body, components) } },
          },
        }),
    responses: { ...successes(route, components), ...failures(route, components) },
  };
}

function fields(schema: TSchema | undefined, place: 'path' | 'query'): Json[] {
  if (schema === undefined) return [];
  const { properties, required = [] } = schema as unknown as { properties: Record<string, Json>; required?: string[] };
  return Object.entries(properties).map(([name, property]) => {
    const { description, ...rest } = property;
    return { name, in: place, required: required.includes(name), description, schema: rest };
  });
}

function successes(route: Route, components: Map<string, Json>): Json {
  return Object.fromEntries(
    Object.entries(route.responses).map(([status, { description, schema }]) => [
      status,
      {
        description,
        headers: HEADERS,
        ...(schema === null ? {} : { content: { 'application/json': { schema: reference(schema, components) } } }),
      },
    ]),
  );
}

/** Errors that this route may answer. */
export function errorCodesOf(route: Route): ErrorCode[] {
  return [
    ...ALWAYS,
    ...(route.rateLimited === false ? [] : (['RATE_LIMITED'] as const)),
    ...(route.scope === null ? [] : (['INSUFFICIENT_SCOPE'] as const)),
    ...(route.params === undefined && route.query === undefined && route.body === undefined
      ? []
      : (['VALIDATION_FAILED'] as const)),
    ...(route.body === undefined ? [] : (['MALFORMED_JSON', 'PAYLOAD_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE'] as const)),
    ...(route.idempotent === true ? (['IDEMPOTENCY_CONFLICT', 'IDEMPOTENCY_KEY_REUSED'] as const) : []),
    ...(route.errors ?? []),
  ];
}

function failures(route: Route, components: Map<string, Json>): Json {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of errorCodesOf(route)) {
    const { status } = ERROR_TABLE[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [
      status,
      {
        description: codes.map((code) => `\`${code}\`: ${ERROR_TABLE[code].message}`).join('\n\n'),
        headers: HEADERS,
        content: {
          'application/json': {
            schema: {
              allOf: [
                reference(ErrorSchema, components),
                { properties: { error: { properties: { code: { enum: codes } } } } },
              ],
            },
          },
        },
      },
    ]),
  );
}

/** A schema with a title stands once among the components and is referred to; others stand where they are used. */
function reference(schema: unknown, components: Map<string, Json>): unknown {
  if (Array.isArray(schema)) return schema.map((item) => reference(item, components));
  if (typeof schema !== 'object' || schema === null) return schema;
  const { title, ...rest } = schema as Json;
  const plain = (): Json =>
    Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, reference(value, components)]));
  if (typeof title !== 'string') return plain();
  if (!components.has(title)) {
    components.set(title, {});
    components.set(title, plain());
  }
  return { $ref: `#/components/schemas/${title}` };
}
