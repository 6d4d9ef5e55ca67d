import { EVENT_TYPES, SIGNATURE_CONTRACT } from '@callplane/core';
import { eventSchema, EventSchema } from '../events/events.schemas.js';
import { EXAMPLE_IDS, exampleOf } from './examples.js';
import type { Components } from './components.js';

type Json = Record<string, unknown>;

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
export function deliveryWebhook(components: Components): Json {
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
