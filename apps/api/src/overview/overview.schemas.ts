import { Type } from 'typebox';
import { orNull, timestamp } from '../http/schemas.js';

const count = (description: string) =>
  Type.Object(
    { count: Type.Integer(), capped: Type.Boolean({ description: 'Whether there are more than `count`.' }) },
    { description, additionalProperties: false },
  );

const outcomes = {
  pending: Type.Integer(),
  delivering: Type.Integer(),
  succeeded: Type.Integer(),
  failed: Type.Integer(),
};

const CallsOverview = Type.Object(
  {
    activeRooms: count('Rooms with at least one participant.'),
    participants: count('Participants that are in a room.'),
    joins: Type.Object(
      {
        count: Type.Integer(),
        capped: Type.Boolean({ description: 'Whether there are more: then only the newest ones are counted.' }),
        since: timestamp('Beginning of the first bucket, one hour ago.'),
        buckets: Type.Array(
          Type.Object(
            { from: timestamp('Beginning of five minutes.'), count: Type.Integer() },
            { additionalProperties: false },
          ),
        ),
      },
      { additionalProperties: false },
    ),
  },
  { title: 'CallsOverview', additionalProperties: false },
);

const WebhooksOverview = Type.Object(
  {
    deliveries: Type.Object(
      {
        since: timestamp('Beginning of the first bucket, one hour ago.'),
        ...outcomes,
        capped: Type.Boolean({ description: 'Whether there are more: then only the newest ones are counted.' }),
        buckets: Type.Array(
          Type.Object({ from: timestamp('Beginning of five minutes.'), ...outcomes }, { additionalProperties: false }),
        ),
      },
      {
        description: 'The deliveries that were created in the last hour, by their present status.',
        additionalProperties: false,
      },
    ),
    oldestDueAt: orNull(timestamp('When the oldest delivery was due that still waits. Null: none is late.')),
    endpoints: Type.Object({ enabled: Type.Integer(), disabled: Type.Integer() }, { additionalProperties: false }),
    failingEndpoints: Type.Array(
      Type.Object(
        {
          endpointId: Type.String(),
          url: Type.String(),
          enabled: Type.Boolean(),
          failingSince: timestamp('Beginning of the present series of failures.'),
          lastFailedAt: orNull(timestamp('Latest failure, to the minute.')),
        },
        { additionalProperties: false },
      ),
      { description: 'Endpoints without a success since `failingSince`, those that fail for the longest time first.' },
    ),
  },
  { title: 'WebhooksOverview', additionalProperties: false },
);

export const OverviewSchema = Type.Object(
  {
    at: timestamp('Time of the figures.'),
    calls: orNull(CallsOverview),
    webhooks: orNull(WebhooksOverview),
  },
  { title: 'Overview', additionalProperties: false },
);
