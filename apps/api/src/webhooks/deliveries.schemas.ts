import {
  ATTEMPT_OUTCOMES,
  ATTEMPT_PHASES,
  DELIVERY_FAILURE_REASONS,
  DELIVERY_STATUSES,
  EVENT_TYPES,
  PATH_ID_PATTERN,
  REPLAYS_MAX,
} from '@callplane/core';
import { Type } from 'typebox';
import { EventSchema } from '../events/events.schemas.js';
import { namedObject, oneOf, orNull, pathId, strictObject, timestamp } from '../http/schemas.js';
import { EndpointPath } from './endpoints.schemas.js';

const deliveryFields = {
  id: Type.String({ description: 'Delivery identifier, `dlv_…`. The same for all retries and replays.' }),
  eventId: Type.String(),
  eventType: oneOf(EVENT_TYPES),
  endpointId: Type.String(),
  roomId: orNull(Type.String({ description: 'Room of the event. Null for events without a room.' })),
  url: Type.String({ description: "URL of this run. Before its first attempt, the endpoint's current URL." }),
  status: oneOf(DELIVERY_STATUSES),
  failureReason: orNull(oneOf(DELIVERY_FAILURE_REASONS)),
  replayCount: Type.Integer({ description: 'Explicit replays so far. Send it as `expectedReplayCount`.' }),
  attempts: Type.Integer({ description: 'Attempts of this run. An attempt counts when it begins.' }),
  lastStatusCode: orNull(
    Type.Integer({ description: 'HTTP status of the latest attempt over all runs. Null if there was no answer.' }),
  ),
  lastErrorCode: orNull(Type.String({ description: '`errorCode` of the latest attempt over all runs.' })),
  nextAttemptAt: orNull(
    timestamp(
      'When the next attempt is due. Null unless the delivery is pending, its endpoint is enabled and `blockedBy` is null.',
    ),
  ),
  blockedBy: orNull(
    Type.String({
      description:
        'The delivery of an earlier event of the room that this one waits for, if the endpoint has the ordering `room`.',
    }),
  ),
  signingKeyVersion: Type.Integer({ description: 'Version of the secret that signs this run.' }),
  createdAt: timestamp('When the event happened.'),
  completedAt: orNull(timestamp('When the delivery last finished. Null while a run is open.')),
};

export const DeliverySchema = namedObject('WebhookDelivery', deliveryFields);

const DiagnosisSchema = namedObject(
  'WebhookDiagnosis',
  {
    summary: Type.String({ description: 'Why it failed, in one sentence.' }),
    advice: Type.String({ description: 'Advice to the owner of the receiver.' }),
  },
  { description: 'An explanation for people. Programs use `outcome`, `errorCode` and `failureReason`.' },
);
const headers = (description: string) => orNull(Type.Record(Type.String(), Type.String(), { description }));

const milliseconds = (description: string) => orNull(Type.Integer({ description: `${description}, in milliseconds.` }));

export const AttemptSchema = namedObject('WebhookAttempt', {
  id: Type.String({ description: 'Attempt identifier, `att_…`.' }),
  deliveryId: Type.String(),
  replayCount: Type.Integer({ description: 'The run: 0, or the number of the replay.' }),
  attempt: Type.Integer({ description: '1 to 8 within the run.' }),
  url: Type.String(),
  signingKeyVersion: Type.Integer(),
  startedAt: timestamp('When the attempt began.'),
  durationMs: Type.Integer(),
  outcome: oneOf(ATTEMPT_OUTCOMES, 'The stage in which the attempt ended.'),
  errorCode: orNull(Type.String({ description: 'E.g. `ECONNREFUSED`, `CERT_HAS_EXPIRED`.' })),
  statusCode: orNull(Type.Integer({ description: 'HTTP status, if the receiver answered.' })),
  address: orNull(Type.String({ description: 'The IP address of the connection. Null for a blocked attempt.' })),
  timings: strictObject({
    dnsMs: milliseconds('Name resolution'),
    connectMs: milliseconds('TCP'),
    tlsMs: milliseconds('TLS'),
    firstByteMs: milliseconds('From the request to the first byte of its response'),
  }),
  responseBody: orNull(Type.String({ description: 'First 1 KiB of the response, as text.' })),
  responseTruncated: Type.Boolean({ description: 'Whether the response was longer than `responseBody`.' }),
  responseHeaders: headers(
    'Headers of an answer that is not 2xx: `allow`, `content-type`, `location`, `retry-after`, `server`, `via` and ' +
      '`www-authenticate`, each cut to 200 characters. Null without any, and after the erasure of the event.',
  ),
  requestHeaders: headers(
    'Headers of the request, without `host`, `content-length` and `connection`. Signatures are cut to their first 8 ' +
      'characters. Null if no request was sent, or if its worker died.',
  ),
  earlierAddresses: Type.Array(
    strictObject({
      address: Type.String(),
      errorCode: orNull(Type.String()),
      durationMs: Type.Integer(),
    }),
    { description: 'Addresses of the host that refused a connection before `address` was tried, at most 3.' },
  ),
  phases: Type.Array(
    strictObject({
      phase: oneOf(ATTEMPT_PHASES),
      startMs: Type.Integer({ description: 'From the beginning of the attempt, in milliseconds.' }),
      durationMs: Type.Integer({ description: 'In milliseconds.' }),
      failed: Type.Boolean({ description: 'Whether the attempt ended in this phase without an answer.' }),
    }),
    {
      description:
        'The time of the attempt as a waterfall: its phases one after another. A phase that did not happen is left ' +
        'out, such as `connect` on a connection that was kept alive.',
    },
  ),
  diagnosis: orNull(DiagnosisSchema),
});

export const DeliveryDetailSchema = namedObject('WebhookDeliveryDetail', {
  ...deliveryFields,
  event: EventSchema,
  body: Type.String({ description: 'The exact text of the request body, which the signature covers.' }),
  lastAttempt: orNull(AttemptSchema),
  diagnosis: orNull(DiagnosisSchema),
});

export const DeliveryPath = Type.Object({
  ...EndpointPath.properties,
  deliveryId: pathId('Delivery of this endpoint.'),
});

export const deliveryFilters = {
  roomId: Type.Optional(
    Type.String({ pattern: PATH_ID_PATTERN, description: 'Returns only deliveries of the events of this room.' }),
  ),
  status: Type.Optional(oneOf(DELIVERY_STATUSES)),
  eventType: Type.Optional(oneOf(EVENT_TYPES)),
  failureReason: Type.Optional(oneOf(DELIVERY_FAILURE_REASONS, 'Returns only failed deliveries with this reason.')),
  since: Type.Optional(timestamp('Returns only deliveries that were created at this time or later.')),
  until: Type.Optional(timestamp('Returns only deliveries that were created up to this time.')),
};

export const ofEndpoint = Type.Optional(
  Type.String({ pattern: PATH_ID_PATTERN, description: 'Returns only the deliveries of this endpoint.' }),
);

export const ReplayBody = namedObject('ReplayDelivery', {
  expectedReplayCount: Type.Integer({
    minimum: 0,
    maximum: REPLAYS_MAX,
    description:
      'The `replayCount` that you read. If two clients replay at the same time, the server rejects one of them.',
  }),
});
