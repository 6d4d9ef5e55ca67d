import type { ErrorDetail } from '@callplane/core';
import { Type } from 'typebox';
import type { UnjudgedParts } from '../http/route.js';

/** The optional query parameters of every webhook route. */
export const TenantQuery = Type.Object({
  projectId: Type.Optional(Type.String({ description: "Must match the key's project." })),
  environmentId: Type.Optional(Type.String({ description: "Must match the key's environment." })),
});

/** Refuses them when they name another tenant than the key's. */
export function judgeTenant({ caller, query }: Pick<UnjudgedParts, 'caller' | 'query'>): ErrorDetail[] {
  return (['projectId', 'environmentId'] as const)
    .filter((name) => typeof query[name] === 'string' && query[name] !== caller[name])
    .map((name) => ({ path: `query.${name}`, message: "must match the API key's" }));
}
