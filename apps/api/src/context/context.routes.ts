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
      description: 'Takes a secret or a publishable key, and needs no scope.',
      tag: 'Context',
      scope: null,
      rateLimited: false,
      responses: { 200: { description: 'What the key belongs to and may do.', schema: ContextSchema } },
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
