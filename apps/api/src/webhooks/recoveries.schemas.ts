import { RECOVERY_STATUSES } from '@callplane/core';
import { Type } from 'typebox';
import { defineList, idOf } from '../http/cursor.js';
import { oneOf, orNull, page, pageQuery, pathId, strictObject, timestamp } from '../http/schemas.js';
import { EndpointPath } from './endpoints.schemas.js';
import { TenantQuery } from './tenant-query.js';

export const RecoverySchema = Type.Object(
  {
    id: Type.String({ description: 'Recovery identifier, `rcv_…`.' }),
    endpointId: Type.String(),
    since: timestamp('Start of the window: deliveries created from this time on.'),
    until: timestamp('End of the window: deliveries created up to this time.'),
    dryRun: Type.Boolean({ description: 'Whether the recovery only counts and changes nothing.' }),
    includePending: Type.Boolean({ description: 'Whether pending deliveries are brought forward, too.' }),
    status: oneOf(RECOVERY_STATUSES),
    matched: Type.Integer({ description: 'Failed and pending deliveries found in the window so far.' }),
    replayed: Type.Integer({ description: 'Failed deliveries that were replayed. 0 with `dryRun`.' }),
    woken: Type.Integer({
      description: 'Pending deliveries whose next attempt was brought forward to now. 0 with `dryRun`.',
    }),
    skipped: Type.Integer({
      description:
        'Failed deliveries that were not replayed: they have 100 replays, their event was erased, or another client ' +
        'replayed them meanwhile.',
    }),
    createdAt: timestamp('When the recovery was created.'),
    completedAt: orNull(timestamp('When the recovery was completed or cancelled.')),
  },
  { title: 'WebhookRecovery', additionalProperties: false },
);

export const CreateRecoveryBody = strictObject(
  {
    since: timestamp('Start of the window: deliveries created from this time on. ISO 8601 with a time zone.'),
    until: Type.Optional(timestamp('End of the window. By default, and at the latest, the current time.')),
    dryRun: Type.Optional(
      Type.Boolean({ default: false, description: 'Counts the matching deliveries and changes nothing.' }),
    ),
    includePending: Type.Optional(
      Type.Boolean({
        default: true,
        description:
          'Brings pending deliveries of the window forward, too: same run, same replay count. With false, only failed ' +
          'deliveries are replayed.',
      }),
    ),
  },
  { title: 'CreateRecovery' },
);

export const RecoveryPath = Type.Object({
  ...EndpointPath.properties,
  recoveryId: pathId('Recovery of this endpoint.'),
});

export const ListRecoveriesQuery = Type.Object({ ...TenantQuery.properties, ...pageQuery() });
export const RECOVERY_LIST = defineList('recoveries', { id: idOf('rcv') });
export const RecoveryPage = page('WebhookRecoveryPage', RecoverySchema);
