import { SIGNATURE_CONTRACT } from '@callplane/core';
import { Type, type TSchema } from 'typebox';
import { defineRoute, type Route } from '../http/route.js';
import { checkTenant, TenantQuery } from '../http/schemas.js';

/** Builds the schema from the constants of the contract, so that each field is documented with its value. */
const SignatureContractSchema = Type.Object(
  Object.fromEntries(
    Object.entries(SIGNATURE_CONTRACT).map(([name, value]): [string, TSchema] => [
      name,
      typeof value === 'object'
        ? Type.Array(Type.Integer(), { examples: [value] })
        : Type.Unsafe({ type: typeof value === 'number' ? 'integer' : 'string', const: value }),
    ]),
  ),
  { title: 'SignatureContract', additionalProperties: false },
);

export function signatureContractRoutes(): Route[] {
  return [
    defineRoute({
      method: 'get',
      path: '/v1/webhooks/signature-contract',
      operationId: 'readSignatureContract',
      summary: 'Read the signing and retry policy',
      tag: 'Webhooks',
      scope: 'webhooks:read',
      query: TenantQuery,
      validate: checkTenant,
      responses: { 200: { description: 'The signing and retry policy.', schema: SignatureContractSchema } },
      handle: () => Promise.resolve({ status: 200, body: SIGNATURE_CONTRACT }),
    }),
  ];
}
