import {
  type ErrorDetail,
  newId,
  PublicError,
  rateLimited,
  RECOVERIES_PENDING_MAX,
  RECOVERY_STATUSES,
} from '@callplane/core';
import { cancelRecovery, findRecovery, insertRecovery, listRecoveries } from '@callplane/db';
import { Type } from 'typebox';
import type { Deps } from '../deps.js';
import { idOf } from '../http/cursor.js';
import { listRoute } from '../http/list-route.js';
import { defineRoute, type UntaggedRoute } from '../http/route.js';
import { namedObject, oneOf, orNull, pathId, present, timestamp } from '../http/schemas.js';
import { EndpointPath } from './endpoints.schemas.js';
import { notFoundBelow, requireEndpoint } from './endpoints.service.js';

const RecoverySchema = namedObject('WebhookRecovery', {
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
});

const CreateRecoveryBody = namedObject('CreateRecovery', {
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
});

const RecoveryPath = Type.Object({
  ...EndpointPath.properties,
  recoveryId: pathId('Recovery of this endpoint.'),
});

const PATH = '/v1/webhooks/{endpointId}/recoveries';

export function recoveryRoutes(deps: Deps): UntaggedRoute[] {
  return [
    defineRoute({
      method: 'post',
      path: PATH,
      operationId: 'createRecovery',
      summary: 'Send all unsuccessful deliveries of a time window now',
      description:
        'Call it when a receiver works again. A worker replays the failed deliveries and brings the pending ones ' +
        'forward, oldest first and at most 100 a second; poll the recovery for its progress. It skips failed deliveries ' +
        'with 100 replays and deliveries of erased events. A delivery that is being sent is included if that attempt ' +
        'fails. The recovery pauses while the endpoint is disabled. With `dryRun`, it only counts.',
      scope: 'webhooks:write',
      params: EndpointPath,
      body: CreateRecoveryBody,
      validate: ({ body }) => checkWindow(body, deps.clock.now()),
      responses: { 202: { description: 'The recovery.', schema: RecoverySchema } },
      async handle({ caller, params, body }) {
        const createdAt = deps.clock.now();
        const { dryRun = false, includePending = true } = body;
        const id = newId('recovery');
        const begun = { id, ...params, ...windowOf(body, createdAt), dryRun, includePending, createdAt };
        const recovery = await insertRecovery(deps.database, caller, begun);
        if (recovery === 'not_found') throw new PublicError('WEBHOOK_NOT_FOUND');
        if (recovery === 'limit') throw tooManyRecoveries();
        return { status: 202, body: present(RecoverySchema, recovery) };
      },
    }),
    listRoute(deps, {
      path: PATH,
      operationId: 'listRecoveries',
      summary: 'List the recoveries of an endpoint, newest first',
      description: 'Also works with the id of a removed endpoint.',
      scope: 'webhooks:read',
      params: EndpointPath,
      position: { id: idOf('rcv') },
      item: RecoverySchema,
      items: 'recoveries',
      read: ({ caller, params }, part) => listRecoveries(deps.reads.prisma, caller, params.endpointId, part),
      onEmpty: ({ caller, params }) => requireEndpoint(deps.reads, caller, params.endpointId),
      present: (recovery) => present(RecoverySchema, recovery),
    }),
    defineRoute({
      method: 'get',
      path: `${PATH}/{recoveryId}`,
      operationId: 'readRecovery',
      summary: 'Read the progress of a recovery',
      scope: 'webhooks:read',
      params: RecoveryPath,
      responses: { 200: { description: 'The recovery.', schema: RecoverySchema } },
      async handle({ caller, params }) {
        const { endpointId, recoveryId } = params;
        const recovery =
          (await findRecovery(deps.reads.prisma, caller, endpointId, recoveryId)) ??
          (await notFoundBelow(deps.reads, caller, endpointId, 'RECOVERY_NOT_FOUND'));
        return { status: 200, body: present(RecoverySchema, recovery) };
      },
    }),
    defineRoute({
      method: 'delete',
      path: `${PATH}/{recoveryId}`,
      operationId: 'cancelRecovery',
      summary: 'Cancel a recovery',
      description:
        'Deliveries that the recovery has replayed or brought forward continue. Cancelling a complete recovery changes nothing.',
      scope: 'webhooks:write',
      params: RecoveryPath,
      responses: { 204: { description: 'The recovery changes no more deliveries.', schema: null } },
      async handle({ caller, params }) {
        const { endpointId, recoveryId } = params;
        const { prisma } = deps.database;
        const isFound = await cancelRecovery(prisma, caller, endpointId, recoveryId, deps.clock.now());
        if (!isFound) await notFoundBelow(deps.database, caller, endpointId, 'RECOVERY_NOT_FOUND');
        return { status: 204 };
      },
    }),
  ];
}

function tooManyRecoveries(): PublicError {
  return rateLimited(
    `${RECOVERIES_PENDING_MAX} recoveries of this endpoint are pending. Cancel one, or try again later.`,
    10,
  );
}

/**
 * A schema cannot compare two times.
 * @param body not validated yet. The schema reports values that are no times.
 */
function checkWindow({ since: from, until: to }: Record<string, unknown>, now: Date): ErrorDetail[] {
  if (typeof from !== 'string' || (to !== undefined && typeof to !== 'string')) return [];
  const { since, until } = windowOf({ since: from, until: to }, now);
  return since >= until ? [{ path: 'body.since', message: 'must be before `until` and in the past' }] : [];
}

/** Ends the window now at the latest: a delivery cannot have failed in the future. */
function windowOf(input: { since: string; until?: string | undefined }, now: Date): { since: Date; until: Date } {
  const until = input.until === undefined ? now : new Date(input.until);
  return { since: new Date(input.since), until: until < now ? until : now };
}
