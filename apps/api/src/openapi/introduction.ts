/**
 * The introduction of the reference, in Markdown. Its headings become entries of the page's contents. docs/ explains each
 * subject in full.
 */
export const INTRODUCTION = `Callplane runs audio and video calls on your own servers. Your backend creates rooms and issues short-lived
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
