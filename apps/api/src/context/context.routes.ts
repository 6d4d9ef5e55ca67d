import { API_KEY_TYPES, SCOPES } from '@callplane/core';
import { Type } from 'typebox';
import { defineRoute, type Route } from '../http/route.js';
import { oneOf } from '../http/schemas.js';

const ContextSchema = Type.Object(
  {
    apiVersion: Type.Literal('v1'),
    projectId: Type.String(),
    environmentId: Type.String(),
    keyId: Type.String(),
    keyType: oneOf(API_KEY_TYPES),
    scopes: Type.Array(oneOf(SCOPES)),
  },
  { title: 'ApiContext', additionalProperties: false },
);

export function contextRoutes(): Route[] {
  return [
    defineRoute({
      method: 'get',
      path: '/v1/',
      operationId: 'readContext',
      summary: 'Read the context of the API key',
      description: 'Accepts a secret or a publishable key. Needs no scope.',
      tag: 'Context',
      scope: null,
      rateLimited: false,
      ignoresBody: true,
      responses: {
        200: { description: 'The project, environment, type and scopes of the key.', schema: ContextSchema },
      },
      handle: ({ caller }) =>
        Promise.resolve({
          status: 200,
          body: {
            apiVersion: 'v1',
            projectId: caller.projectId,
            environmentId: caller.environmentId,
            keyId: caller.keyId,
            keyType: caller.keyType,
            scopes: caller.scopes,
          },
        }),
    }),
  ];
}
