import { RECOVERY_STATUSES } from '@callplane/core';
import { Type } from 'typebox';
import { oneOf, orNull, pathId, strictObject, timestamp } from '../http/schemas.js';
import { EndpointPath } from './endpoints.schemas.js';

export const RecoverySchema = Type.Object(
  {
    id: Type.String({ description: 'Recovery identifier, `rcv_…`.' }),
    endpointId: Type.String(),
    since: timestamp('Failed deliveries that were created from then on …'),
    until: timestamp('… up to then.'),
    dryRun: Type.Boolean({ description: 'Counts and replays nothing.' }),
    status: oneOf(RECOVERY_STATUSES),
    matched: Type.Integer({ description: 'Failed deliveries of the window, so far.' }),
    replayed: Type.Integer({ description: 'Of these, those that were replayed; with `dryRun` none.' }),
    skipped: Type.Integer({
      description: 'Of these, those that could not be: replayed 100 times already, or by somebody else meanwhile.',
    }),
    createdAt: timestamp('When it was asked for.'),
    completedAt: orNull(timestamp('When it was completed or cancelled.')),
  },
  { title: 'WebhookRecovery', additionalProperties: false },
);

export const CreateRecoveryBody = strictObject(
  {
    since: timestamp('Start of the window: deliveries created from then on. ISO 8601 with its zone.'),
    until: Type.Optional(timestamp('End of the window. The present, unless it is earlier.')),
    dryRun: Type.Optional(Type.Boolean({ default: false, description: 'Count what it would do, and do nothing.' })),
  },
  { title: 'CreateRecovery' },
);

export const RecoveryPath = Type.Object({
  ...EndpointPath.properties,
  recoveryId: pathId('Recovery of this endpoint.'),
});
