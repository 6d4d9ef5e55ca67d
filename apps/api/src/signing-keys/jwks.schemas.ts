import { Type } from 'typebox';

/** A public key. `publishedJwk` in packages/db creates it. Source: RFC 7517, RFC 7518 section 6.2.1. */
const JwkSchema = Type.Object(
  {
    kty: Type.Literal('EC'),
    crv: Type.Literal('P-256'),
    x: Type.String(),
    y: Type.String(),
    kid: Type.String({ description: "Key identifier. The `kid` in the token's header refers to it." }),
    alg: Type.Literal('ES256'),
    use: Type.Literal('sig'),
  },
  { title: 'PublicKey', additionalProperties: false },
);

export const JwksSchema = Type.Object(
  { keys: Type.Array(JwkSchema) },
  {
    title: 'PublicKeySet',
    description: 'The public keys that verify participant tokens.',
    additionalProperties: false,
  },
);
