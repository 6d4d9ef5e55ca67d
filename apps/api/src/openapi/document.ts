import type { TSchema } from 'typebox';
import { JWKS_ROUTE } from '../context/public.routes.js';
import type { Route } from '../http/route.js';
import { ANSWER_EXAMPLES } from './answer-examples.js';
import { FailureComponents, HEADER_COMPONENTS, headers, headersOf, SchemaComponents } from './components.js';
import { deliveryWebhook } from './delivery-webhook.js';
import { BODY_EXAMPLES, parameterExample } from './examples.js';

type Json = Record<string, unknown>;

/**
 * The introduction of the reference, in Markdown. Its headings become entries of the page's contents. docs/ explains each
 * subject in full.
 */
const INTRODUCTION = `Callplane runs audio and video calls on your own servers. Your backend creates rooms and issues short-lived
participant tokens. Browsers join with them. Signed webhooks report what happens.

A path that is not listed returns 404 \`ROUTE_NOT_FOUND\`. A listed path with another method answers 405
\`METHOD_NOT_ALLOWED\`.

# First request

\`\`\`sh
export BASE=https://calls.example.com/v1 KEY=rtc_sk_…
curl -s "$BASE/rooms" -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -d '{"name":"Daily"}'
\`\`\`

\`npm start\` prints a line that sets the two variables.

# Keys

Send a secret key (\`rtc_sk_…\`) as bearer token. A key belongs to one project environment, and sees only what belongs
to it: any other id answers 404. Each operation names the scope that the key needs, and answers 403
\`INSUFFICIENT_SCOPE\` without it. A publishable key (\`rtc_pk_…\`) may only read the context, \`GET /v1/\`. Keep secret
keys on your backend. \`rtc keys create\` makes keys, \`rtc keys revoke\` revokes them within five seconds.

# Errors

Every error has the same shape, and its \`requestId\` is also in the header \`x-request-id\` and in the log:

\`\`\`json
{
  "error": {
    "code": "VALIDATION_FAILED",
    "message": "body.name must be a string",
    "requestId": "req_01m7xhkw0cfvqteeeq2c3fv3q8",
    "details": [{ "path": "body.name", "message": "must be a string" }]
  }
}
\`\`\`

Decide by \`code\`; \`message\` is for people. Bodies are strict: an unknown field or a wrong type is 400. Repeat a 429
\`RATE_LIMITED\` and a 503 \`UNAVAILABLE\` after the seconds in \`Retry-After\`.

# Idempotency

\`POST\` of rooms, messages and webhook endpoints takes an \`Idempotency-Key\` of 1 to 255 printable ASCII characters, kept for 24 hours. The
same key with the same body gets the first answer again, with the header \`Idempotency-Replayed: true\`. With another
body it is 422, and while the first request is under way 409.

# Pages

Lists return \`{ "data": […], "nextCursor": "…" }\`. Pass \`nextCursor\` as \`cursor\` to get the next page; null means
that there is none. Events take it as \`after\`, and end with an empty page. A cursor belongs to its list and to the filters of that list. \`limit\` is 1 to 100, by default 20.

# Clean-up

Ending a room and removing a participant are durable operations. 204 means that the clean-up is complete. 202 returns
the operation, which goes on: read it at \`…/runtime-operation\` until it is \`completed\` or \`failed\`. With
\`Prefer: wait=10\` the request waits for up to ten seconds.

# Webhooks

Register an endpoint, keep its \`signingSecret\`, and verify each delivery before you trust it. \`GET
/v1/webhooks/signature-contract\` returns the headers and the signed text; the package \`@callplane/webhook-verifier\`
checks them:

\`\`\`ts
import { verifyWebhook } from '@callplane/webhook-verifier';

const result = verifyWebhook({ headers: request.headers, rawBody, secrets: process.env.WEBHOOK_SECRET! });
if (result.ok) handle(result.event);
else console.warn(result.reason, result.message);
\`\`\`

Answer with 2xx as soon as the event is stored. A failed delivery is repeated with the same bytes, up to 8 attempts in
7.7 hours. An event may arrive more than once: use its \`id\` to drop repetitions. \`sequence\` orders the events of a
room.
`;

/** Builds the OpenAPI 3.1 document from the schemas that validate the routes. */
export function openApiDocument(routes: readonly Route[]): Json {
  const components = new SchemaComponents();
  const failures = new FailureComponents(components);
  // No operation refers to these errors: they answer paths and methods that the document does not list.
  failures.refer('ROUTE_NOT_FOUND', true);
  failures.refer('METHOD_NOT_ALLOWED', true);
  const paths: Record<string, Json> = {};
  for (const route of routes) {
    paths[route.path] ??= {};
    (paths[route.path] as Json)[route.method] = operation(route, components, failures);
  }
  paths[JWKS_ROUTE.path] = { get: jwksOperation(components, failures) };
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
    tags: [...new Set([...routes, JWKS_ROUTE].map(({ tag }) => tag))].map((name) => ({ name })),
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
            '`X-Callplane-CSRF: 1` and an `Origin` that is that of the API.',
        },
      },
      headers: HEADER_COMPONENTS,
      responses: failures.all(),
      schemas: components.all(),
    },
  };
}

function operation(route: Route, components: SchemaComponents, failures: FailureComponents): Json {
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
    ...(route.streams === true ? { 'x-stream': true } : {}),
    ...(route.acceptsLoginCode === true ? { security: [{ apiKey: [] }] } : {}),
    // The reference page shows badges, but not other extensions.
    ...(route.scope === null ? {} : { 'x-scope': route.scope, 'x-badges': [{ name: `scope ${route.scope}` }] }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(route.body === undefined ? {} : { requestBody: requestBody(route, route.body, components) }),
    responses: { ...successes(route, components), ...failures.ofRoute(route) },
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

function fields(schema: TSchema | undefined, place: 'path' | 'query', components: SchemaComponents): Parameter[] {
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
  const example = parameterExample(parameter.name, parameter.schema);
  if (example === undefined) return { ...parameter };
  return parameter.required
    ? { ...parameter, example }
    : { ...parameter, schema: { ...parameter.schema, examples: [example] } };
}

/**
 * Documents a request body. Its schema is inlined and never a component: outside a request body, openapi-typescript
 * treats fields with a default as required.
 */
function requestBody({ operationId, bodyOptional }: Route, schema: TSchema, components: SchemaComponents): Json {
  const { title } = schema as unknown as { title?: string };
  const examples = Object.entries(BODY_EXAMPLES[operationId] ?? {}).map(([name, value]) => [name, { value }]);
  return {
    required: bodyOptional !== true,
    content: {
      'application/json': {
        schema: { ...(title === undefined ? {} : { title }), ...components.inline(schema as unknown as Json) },
        examples: Object.fromEntries(examples) as Json,
      },
    },
  };
}

function successes(route: Route, components: SchemaComponents): Json {
  return Object.fromEntries(
    Object.entries(route.responses).map(([status, { description, schema }]) => [
      status,
      route.streams === true
        ? { description, headers: headers(headersOf(route, Number(status))), content: STREAM_CONTENT }
        : success(description, schema, headers(headersOf(route, Number(status))), components),
    ]),
  );
}

const STREAM_CONTENT = {
  'text/event-stream': {
    schema: { type: 'string', description: 'Server-sent events, as the HTML standard defines them.' },
    example:
      'id: 4712.evt_01m7xhkw0cfvqteeeq2c3fv3q5\nevent: changes\ndata: {"changes":[{"kind":"rooms","type":"room.created"}]}\n\n',
  },
};

function success(description: string, schema: TSchema | null, sent: Json, components: SchemaComponents): Json {
  if (schema === null) return { description, headers: sent };
  const content = { 'application/json': { schema: components.refer(schema), example: answerExample(schema) } };
  return { description, headers: sent, content };
}

/** The example of an answer. The example of a page contains one item. */
function answerExample(schema: TSchema): unknown {
  const { title = '', properties } = schema as unknown as {
    title?: string;
    properties?: { data?: { items?: { title?: string } } };
  };
  const item = properties?.data?.items?.title;
  return item === undefined ? ANSWER_EXAMPLES[title] : { data: [ANSWER_EXAMPLES[item]], nextCursor: null };
}

function jwksOperation(components: SchemaComponents, failures: FailureComponents): Json {
  const { operationId, summary, description, tag, answer } = JWKS_ROUTE;
  return {
    operationId,
    summary,
    description,
    tags: [tag],
    security: [],
    responses: {
      200: success(answer.description, answer.schema, headers(['RequestId', 'JwksCacheControl']), components),
      500: failures.refer('INTERNAL', false),
      503: failures.refer('UNAVAILABLE', false),
    },
  };
}
