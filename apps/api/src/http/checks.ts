import { isAcceptedTime, type ErrorDetail } from '@callplane/core';
import { Type } from 'typebox';
import type { UnvalidatedParts } from './route.js';

/**
 * Checks that the times `since` and `until` exist. A schema cannot express this, and its format accepts a leap second
 * (23:59:60), which `Date` cannot parse.
 * @param values not validated yet. The schema reports values that are not strings.
 */
export function timeFailures(part: 'body' | 'query', values: { since?: unknown; until?: unknown }): ErrorDetail[] {
  return (['since', 'until'] as const)
    .filter((name) => typeof values[name] === 'string' && !isAcceptedTime(new Date(values[name])))
    .map((name) => ({ path: `${part}.${name}`, message: 'must be a time from 1970 to 9999' }));
}

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
