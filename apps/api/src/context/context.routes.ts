import type { Deps } from '../deps.js';
import { defineRoute, type Route } from '../http/route.js';
import { ContextSchema, presentContext } from './context.schemas.js';

export function contextRoutes({ console }: Pick<Deps, 'console'>): Route[] {
  return [
    defineRoute({
      method: 'get',
      path: '/v1/',
      operationId: 'readContext',
      summary: 'Read the context of the API key',
      description: 'Accepts a secret or a publishable key, or a console session, which it describes. Needs no scope.',
      tag: 'Context',
      scope: null,
      rateLimited: false,
      ignoresBody: true,
      responses: {
        200: { description: 'The project, environment, type and scopes of the key.', schema: ContextSchema },
      },
      handle: ({ caller }) =>
        Promise.resolve({ status: 200, body: presentContext(caller, console?.signalingUrl ?? null) }),
    }),
  ];
}
