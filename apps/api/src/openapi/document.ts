import { Type, type TSchema } from 'typebox';
import { EVENT_TYPES, SIGNATURE_CONTRACT } from '@callplane/core';
import { CONTEXT_ROUTE } from '../context/context.routes.js';
import { JWKS_ROUTE } from '../context/public.routes.js';
import type { PlainRoute, Route } from '../http/route.js';
import { Components, errorCodesOf, type HeaderName, headers } from './components.js';
import { bodyExamples, exampleOf, EXAMPLE_IDS } from './examples.js';
import { eventSchema, EventSchema } from '../events/events.schemas.js';

type Json = Record<string, unknown>;

/** The introduction of the reference, in Markdown. docs/ explains each subject in full. */
const INTRODUCTION = `Callplane runs audio and video calls on your own servers. Your backend creates rooms and issues short-lived
participant tokens. Browsers join with them. Signed webhooks report events.

# First request

\`\`\`sh
export BASE=https://calls.example.com/v1 KEY=rtc_sk_…
curl -s "$BASE/rooms" -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -d '{"name":"Daily"}'
\`\`\`

\`npm start\` prints a line that sets the two variables.

# Keys

Send a secret key (\`rtc_sk_…\`) as bearer token. A key belongs to one project environment, and sees nothing
else: any other id answers 404. Each operation names the scope that the key needs. Keep secret keys on your backend.

# Errors

Every error has the shape \`{ "error": { "code", "message", "requestId", "details"? } }\`. Decide by \`code\`; \`message\`
is for people. Repeat a 429 \`RATE_LIMITED\` and a 503 \`UNAVAILABLE\` after the seconds in \`Retry-After\`.

# Pages

Lists return \`{ "data": […], "nextCursor": "…" }\`. Pass \`nextCursor\` as \`cursor\` to get the next page; null means
that there is none. Events take it as \`after\`, and end with an empty page.

# Webhooks

Register an endpoint, keep its \`signingSecret\`, and verify each delivery before you trust it, with the package
\`@callplane/webhook-verifier\`. Answer with 2xx as soon as the event is stored. An event may arrive more than once: use
its \`id\` to drop repetitions.
`;

export function openApiDocument(routes: readonly Route[]): Json {
  const components = new Components();
  // No operation refers to these errors: they answer paths and methods that the document does not list.
  components.failures(['ROUTE_NOT_FOUND', 'METHOD_NOT_ALLOWED'], true);
  const paths: Record<string, Json> = {};
  const addPlain = (route: PlainRoute) => (paths[route.path] = { get: plainOperation(route, components) });
  addPlain(CONTEXT_ROUTE);
  for (const route of routes) {
    paths[route.path] ??= {};
    (paths[route.path] as Json)[route.method] = operation(route, components);
  }
  addPlain(JWKS_ROUTE);
  const webhooks = deliveryWebhook(components);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Callplane',
      version: 'v1',
      description: INTRODUCTION,
    },
    servers: [{ url: '/' }],
    security: [{ apiKey: [] }, { consoleSession: [] }],
    tags: [...new Set([CONTEXT_ROUTE, ...routes, JWKS_ROUTE].map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    webhooks,
    components: {
      securitySchemes: {
        apiKey: { type: 'http', scheme: 'bearer', description: 'An API key: `rtc_sk_…` or `rtc_pk_…`.' },
        consoleSession: {
          type: 'apiKey',
          in: 'cookie',
          name: 'callplane_session',
          description:
            'A session of the console, over https in `__Host-callplane_session`. Requests other than GET also need ' +
            '`X-Callplane-CSRF: 1` and the `Origin` of the API.',
        },
      },
      ...components.all(),
    },
  };
}

function operation(route: Route, components: Components): Json {
  const parameters = [
    ...fields(route.params, 'path', components),
    ...fields(route.query, 'query', components),
    ...(route.idempotent === true ? [IDEMPOTENCY_KEY] : []),
    ...(route.prefers === true ? [PREFER] : []),
  ].map(withExample);
  return {
    operationId: route.operationId,
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    tags: [route.tag],
    ...route.document,
    // The reference page shows badges, but not other extensions.
    ...(route.scope === null ? {} : { 'x-scope': route.scope, 'x-badges': [{ name: `scope ${route.scope}` }] }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(route.body === undefined ? {} : { requestBody: requestBody(route.body, components) }),
    responses: { ...successes(route, components), ...components.failures(errorCodesOf(route), true) },
  };
}

interface Parameter {
  name: string;
  in: 'path' | 'query' | 'header';
  required: boolean;
  description?: unknown;
  schema: Json;
}

const IDEMPOTENCY_KEY: Parameter = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: 'Kept for 24 hours. A request with the same key and body gets the first response again.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[\\x20-\\x7e]{1,255}$' },
};

const PREFER: Parameter = {
  name: 'Prefer',
  in: 'header',
  required: false,
  description: '`wait=N` waits up to N seconds (at most 10) for completion. `respond-async` does not wait (RFC 7240).',
  schema: { type: 'string' },
};

function fields(schema: TSchema | undefined, place: 'path' | 'query', components: Components): Parameter[] {
  if (schema === undefined) return [];
  const { properties, required = [] } = schema as unknown as { properties: Record<string, Json>; required?: string[] };
  return Object.entries(properties).map(([name, property]) => {
    const { description, ...rest } = components.inline(property);
    return { name, in: place, required: required.includes(name), description, schema: rest };
  });
}

/**
 * Adds an example to a parameter. When a reader tries an operation out, the documentation page sends the example of the
 * parameter. An optional parameter therefore has its example inside its schema, which the page does not send: example
 * ids exist in no environment.
 */
function withExample(parameter: Parameter): Json {
  const example = exampleOf(parameter.schema, parameter.name);
  if (example === undefined) return { ...parameter };
  return parameter.required
    ? { ...parameter, example }
    : { ...parameter, schema: { ...parameter.schema, examples: [example] } };
}

/**
 * Documents a request body. Its schema is inlined and never a component: outside a request body, openapi-typescript
 * treats fields with a default as required.
 */
function requestBody(schema: TSchema, components: Components): Json {
  const { title } = schema as unknown as { title?: string };
  const examples = Object.entries(bodyExamples(schema)).map(([name, value]) => [name, { value }]);
  return {
    required: !Type.IsOptional(schema),
    content: {
      'application/json': {
        schema: { ...(title === undefined ? {} : { title }), ...components.inline(schema as unknown as Json) },
        examples: Object.fromEntries(examples) as Json,
      },
    },
  };
}

function successes(route: Route, components: Components): Json {
  const own: HeaderName[] = [
    ...(route.idempotent === true ? (['IdempotencyReplayed'] as const) : []),
    ...(route.prefers === true ? (['PreferenceApplied'] as const) : []),
    ...(route.setsCookie === true ? (['SetCookie'] as const) : []),
  ];
  return Object.fromEntries(
    Object.entries(route.responses).map(([status, response]) => [
      status,
      success(response, headers(Number(status), true, own), components),
    ]),
  );
}

function success({ description, schema, content }: Route['responses'][number], sent: Json, components: Components) {
  if (schema === null) return { description, headers: sent, ...(content === undefined ? {} : { content }) };
  const json = { schema: components.refer(schema), example: exampleOf(schema) };
  return { description, headers: sent, content: { 'application/json': json } };
}

function plainOperation(route: PlainRoute, components: Components): Json {
  const { operationId, summary, description, tag, response, isPublic = false } = route;
  return {
    operationId,
    summary,
    description,
    tags: [tag],
    ...(isPublic ? { security: [] } : {}),
    responses: {
      200: success(response, headers(200, false, route.headers), components),
      ...components.failures(route.errors, false),
    },
  };
}

/** The request headers of a delivery. `headersOf` in the webhook worker writes them. */
const REQUEST_HEADERS = [
  {
    name: SIGNATURE_CONTRACT.signatureHeader,
    required: true,
    description: `\`${SIGNATURE_CONTRACT.signatureFormat}\`. ${SIGNATURE_CONTRACT.signedContent}`,
    schema: { type: 'string', pattern: '^t=\\d{1,12},v1=[0-9a-f]{64}$' },
    example: 't=1795172700,v1=5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd',
  },
  {
    name: SIGNATURE_CONTRACT.deliveryIdHeader,
    required: true,
    description: 'Identifies the delivery. Signed. The same for all retries and replays.',
    schema: { type: 'string' },
    example: EXAMPLE_IDS.deliveryId,
  },
  {
    name: SIGNATURE_CONTRACT.replayCountHeader,
    required: true,
    description: '0, or the number of the replay. Signed.',
    schema: { type: 'integer', minimum: 0, maximum: SIGNATURE_CONTRACT.maximumExplicitReplays },
    example: 0,
  },
  {
    name: SIGNATURE_CONTRACT.secretVersionHeader,
    required: true,
    description: 'The version of the secret that signed the request. Not signed.',
    schema: { type: 'integer', minimum: 1 },
    example: 1,
  },
  {
    name: 'traceparent',
    required: false,
    description: 'W3C Trace Context of the request that caused the event, if that request had one.',
    schema: { type: 'string' },
    example: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  },
];

/** The `webhooks` object: the request that a receiver gets, and how its answer is interpreted. */
function deliveryWebhook(components: Components): Json {
  return {
    event: {
      post: {
        operationId: 'receiveEvent',
        summary: 'An event that an endpoint subscribes to',
        description: `A delivery is sent at least once. ${SIGNATURE_CONTRACT.verification} ${SIGNATURE_CONTRACT.deduplication}`,
        tags: ['Webhooks'],
        security: [],
        parameters: REQUEST_HEADERS.map((header) => ({ in: 'header', ...header })),
        requestBody: {
          required: true,
          content: {
            'application/json': {
              schema: components.refer(EventSchema),
              examples: Object.fromEntries(EVENT_TYPES.map((type) => [type, { value: exampleOf(eventSchema(type)) }])),
            },
          },
        },
        responses: {
          '2XX': {
            description: `Delivered, if the response arrives within ${SIGNATURE_CONTRACT.deliveryDeadlineSeconds} seconds.`,
          },
          '408': { description: 'The delivery is retried.' },
          '425': { description: 'The delivery is retried.' },
          '429': { description: 'The delivery is retried.' },
          '5XX': { description: 'The delivery is retried.' },
          default: { description: 'The delivery has failed and is not retried. Redirects are not followed.' },
        },
      },
    },
  };
}
