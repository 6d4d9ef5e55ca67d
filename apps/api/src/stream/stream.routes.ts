import { mayUse, PATH_ID_PATTERN, STREAM_KIND_NAMES, STREAM_KINDS, type StreamKind } from '@callplane/core';
import { Type } from 'typebox';
import type { Deps } from '../deps.js';
import { requireScope } from '../http/authenticate.js';
import { contextOf } from '../http/request-context.js';
import { defineRoute, tagged, type Route, type UnvalidatedParts } from '../http/route.js';
import { strictObject } from '../http/schemas.js';

const KINDS = STREAM_KIND_NAMES.join('|');

const StreamQuery = strictObject({
  kinds: Type.Optional(
    Type.String({
      pattern: `^(${KINDS})(,(${KINDS})){0,2}$`,
      description: `Comma-separated: \`${STREAM_KIND_NAMES.join('`, `')}\`. By default all that the caller may read.`,
    }),
  ),
  roomId: Type.Optional(
    Type.String({
      pattern: PATH_ID_PATTERN,
      description: 'Restricts the changes to this room.',
    }),
  ),
  after: Type.Optional(
    Type.String({
      maxLength: 60,
      description: 'The `id` of the last message that the client has got. The header `Last-Event-ID` wins over it.',
    }),
  ),
});

const STREAM_CONTENT = {
  'text/event-stream': {
    schema: { type: 'string', description: 'Server-sent events, as the HTML standard defines them.' },
    example:
      'id: 4712.evt_01m7xhkw0cfvqteeeq2c3fv3q5\nevent: changes\ndata: {"changes":[{"kind":"rooms","type":"room.created"}]}\n\n',
  },
};

export function streamRoutes({ streams }: Pick<Deps, 'streams'>): Route[] {
  return tagged('Events', [
    defineRoute({
      method: 'get',
      path: '/v1/stream',
      operationId: 'openStream',
      summary: 'Stream changes as they happen',
      description:
        'Server-sent events. `ready` comes first, `changes` names the changed objects, `reset` says that ' +
        'changes were missed: read everything again. `end` says why the stream ends: connect again. Send the last `id` as ' +
        '`Last-Event-ID` to continue. Rooms and operations need `rooms:read`, participants `participants:read`.',
      scope: null,
      document: { 'x-stream': true },
      query: StreamQuery,
      errors: ['INSUFFICIENT_SCOPE'],
      responses: { 200: { description: 'A stream of changes.', schema: null, content: STREAM_CONTENT } },
      async handle({ caller, query, response }) {
        const context = contextOf(response);
        const open = await streams.prepare({
          tenant: caller,
          kinds: kindsOf(caller, query.kinds),
          roomId: query.roomId ?? null,
          after: response.req.get('last-event-id') ?? query.after ?? null,
          // A flood of unknown keys, which fills the batches, must not keep the stream of a revoked key open.
          isKeyValid: () => context.isKeyValid({ inBatch: 'if_room' }),
        });
        // Before the listener that writes the log line of the request.
        response.prependOnceListener('close', () => (context.waitedMs += performance.now() - context.startedAtMs));
        open(response, context.headers);
        return null;
      },
    }),
  ]);
}

/** @throws PublicError INSUFFICIENT_SCOPE if a wanted kind needs a scope that the caller lacks, or no kind is left. */
function kindsOf(caller: UnvalidatedParts['caller'], wanted: string | undefined): ReadonlySet<StreamKind> {
  if (wanted === undefined) {
    requireScope(caller, ...new Set(Object.values(STREAM_KINDS)));
    return new Set(STREAM_KIND_NAMES.filter((kind) => mayUse(caller, STREAM_KINDS[kind])));
  }
  const kinds = wanted.split(',') as StreamKind[];
  for (const kind of kinds) requireScope(caller, STREAM_KINDS[kind]);
  return new Set(kinds);
}
