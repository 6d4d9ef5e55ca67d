import type { ErrorDetail } from '@callplane/core';
import { Type } from 'typebox';
import type { UnvalidatedParts } from '../http/route.js';

/** The optional query parameters of every webhook route. */
export const TenantQuery = Type.Object({
  projectId: Type.Optional(Type.String({ description: "Must match the key's project." })),
  environmentId: Type.Optional(Type.String({ description: "Must match the key's environment." })),
});

/** Rejects a project or environment that differs from that of the API key. */
export function checkTenant({ caller, query }: Pick<UnvalidatedParts, 'caller' | 'query'>): ErrorDetail[] {
  return (['projectId', 'environmentId'] as const)
    .filter((name) => typeof query[name] === 'string' && query[name] !== caller[name])
    .map((name) => ({ path: `query.${name}`, message: `must match the ${name} of the API key` }));
}
