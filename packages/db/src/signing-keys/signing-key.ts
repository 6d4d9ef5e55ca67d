import { createHash, createPrivateKey, generateKeyPair, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import { open, seal, type MasterKeys } from '@callplane/core';

/** The public key as stored. Source: RFC 7518, section 6.2.1. */
// A type, because TypeScript does not accept an interface as a JSON object.
export type PublicJwk = { kty: 'EC'; crv: 'P-256'; x: string; y: string };

/** A key of the JWKS (RFC 7517), without the private `d`. */
export type PublishedJwk = PublicJwk & { kid: string; alg: 'ES256'; use: 'sig' };

const generate = promisify(generateKeyPair);

/** Generates an ES256 key. Its private part (PKCS#8 PEM) is sealed with its key id as the context. */
export async function generateSigningKey(masterKeys: MasterKeys) {
  const { publicKey, privateKey } = await generate('ec', { namedCurve: 'P-256' });
  const { x, y } = publicKey.export({ format: 'jwk' }) as { x: string; y: string };
  const publicJwk: PublicJwk = { kty: 'EC', crv: 'P-256', x, y };
  const id = thumbprint(publicJwk);
  const pem = privateKey.export({ format: 'pem', type: 'pkcs8' }) as string;
  return { id, publicJwk, privateKeySealed: seal(masterKeys, pem, contextOf(id)) };
}

/** @throws Error when the sealed text was altered or its master key is not configured. */
export function openSigningKey(masterKeys: MasterKeys, kid: string, privateKeySealed: string): KeyObject {
  return createPrivateKey(open(masterKeys, privateKeySealed, contextOf(kid)));
}

export function publishedJwk(kid: string, { kty, crv, x, y }: PublicJwk): PublishedJwk {
  return { kty, crv, x, y, kid, alg: 'ES256', use: 'sig' };
}

/** Source: RFC 7638: SHA-256 over the required members, in lexical order and without white space. */
export function thumbprint({ kty, crv, x, y }: PublicJwk): string {
  return createHash('sha256').update(JSON.stringify({ crv, kty, x, y })).digest('base64url');
}

function contextOf(kid: string): string {
  return `signing-key:${kid}`;
}
