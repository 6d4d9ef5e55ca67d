import { PublicError, type ErrorDetail, type Tenant } from '@callplane/core';
import { Type } from 'typebox';

/** The optional query parameters of every webhook route. */
export const TenantQuery = Type.Object({
  projectId: Type.Optional(Type.String({ description: "Must match the key's project." })),
  environmentId: Type.Optional(Type.String({ description: "Must match the key's environment." })),
});

/** @throws PublicError VALIDATION_FAILED when they name another tenant than the key's. */
export function matchTenant(tenant: Tenant, query: { projectId?: string; environmentId?: string }): void {
  const details: ErrorDetail[] = (['projectId', 'environmentId'] as const)
    .filter((name) => query[name] !== undefined && query[name] !== tenant[name])
    .map((name) => ({ path: `query.${name}`, message: "must match the API key's" }));
  if (details.length > 0) throw new PublicError('VALIDATION_FAILED', { details });
}
