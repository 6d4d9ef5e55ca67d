import {
  ATTEMPT_OUTCOMES,
  DELIVERY_FAILURE_REASONS,
  DELIVERY_STATUSES,
  EVENT_TYPES,
  REPLAYS_MAX,
} from '@callplane/core';
import { Type } from 'typebox';
import { EventSchema } from '../events/events.schemas.js';
import { oneOf, orNull, page, pageQuery, pathId, strictObject, timestamp } from '../http/schemas.js';
import { EndpointPath } from './endpoints.schemas.js';
import { TenantQuery } from './tenant-query.js';

const deliveryFields = {
  id: Type.String({ description: 'Delivery identifier, `dlv_…`; the same over all retries and replays.' }),
  eventId: Type.String(),
  eventType: oneOf(EVENT_TYPES),
  endpointId: Type.String(),
  url: Type.String({ description: "Where this run goes; until its first attempt the endpoint's present URL." }),
  status: oneOf(DELIVERY_STATUSES),
  failureReason: orNull(oneOf(DELIVERY_FAILURE_REASONS)),
  replayCount: Type.Integer({ description: 'Explicit replays so far. Send it as `expectedReplayCount`.' }),
  attempts: Type.Integer({ description: 'Attempts of this run; counted when one begins.' }),
  nextAttemptAt: orNull(timestamp('When it is due; null unless it is pending.')),
  signingKeyVersion: Type.Integer({ description: "Of this run's secret." }),
  createdAt: timestamp('When the event happened.'),
  completedAt: orNull(timestamp('Latest terminal outcome.')),
};

export const DeliverySchema = Type.Object(deliveryFields, { title: 'WebhookDelivery', additionalProperties: false });

const milliseconds = (description: string) => orNull(Type.Integer({ description: `${description}, in milliseconds.` }));

export const AttemptSchema = Type.Object(
  {
    id: Type.String({ description: 'Attempt identifier, `att_…`.' }),
    deliveryId: Type.String(),
    replayCount: Type.Integer({ description: 'The run: 0, or the number of the replay.' }),
    attempt: Type.Integer({ description: '1 to 8 within the run.' }),
    url: Type.String(),
    signingKeyVersion: Type.Integer(),
    startedAt: timestamp('When it began.'),
    durationMs: Type.Integer(),
    outcome: oneOf(ATTEMPT_OUTCOMES, 'The stage that it ended in.'),
    errorCode: orNull(Type.String({ description: 'E.g. `ECONNREFUSED`, `CERT_HAS_EXPIRED`.' })),
    statusCode: orNull(Type.Integer({ description: 'HTTP status, when one came.' })),
    address: orNull(Type.String({ description: 'What was connected to; null for a blocked attempt.' })),
    timings: Type.Object(
      {
        dnsMs: milliseconds('Name resolution'),
        connectMs: milliseconds('TCP'),
        tlsMs: milliseconds('TLS'),
        firstByteMs: milliseconds('From the request to the first byte of its answer'),
      },
      { additionalProperties: false },
    ),
    responseBody: orNull(Type.String({ description: 'First 1 KiB of the answer, as text.' })),
    responseTruncated: Type.Boolean({ description: 'Whether the answer was longer.' }),
  },
  { title: 'WebhookAttempt', additionalProperties: false },
);

export const DeliveryDetailSchema = Type.Object(
  {
    ...deliveryFields,
    event: EventSchema,
    lastAttempt: orNull(AttemptSchema),
  },
  { title: 'WebhookDeliveryDetail', additionalProperties: false },
);

export const DeliveryPath = Type.Object({
  ...EndpointPath.properties,
  deliveryId: pathId('Delivery of this endpoint.'),
});

export const ListDeliveriesQuery = Type.Object({
  ...TenantQuery.properties,
  status: Type.Optional(oneOf(DELIVERY_STATUSES)),
  eventType: Type.Optional(oneOf(EVENT_TYPES)),
  ...pageQuery('deliveries'),
});

export const ListAttemptsQuery = Type.Object({ ...TenantQuery.properties, ...pageQuery('attempts') });

export const DeliveryPage = page('WebhookDeliveryPage', DeliverySchema);
export const AttemptPage = page('WebhookAttemptPage', AttemptSchema);

export const ReplayBody = strictObject(
  {
    expectedReplayCount: Type.Integer({
      minimum: 0,
      maximum: REPLAYS_MAX,
      description: '`replayCount` of the delivery as you have read it: of two who replay at once, one is turned away.',
    }),
  },
  { title: 'ReplayDelivery' },
);
