import { createHash, createPrivateKey, generateKeyPair, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import { open, seal, type MasterKeys } from '@callplane/core';

/** The public part as it is stored. Source: RFC 7518, section 6.2.1. */
// A type and not an interface: only then is it a JSON object to TypeScript.
export type PublicJwk = { kty: 'EC'; crv: 'P-256'; x: string; y: string };

/** A key of the JWKS (RFC 7517); never has the private `d`. */
export type PublishedJwk = PublicJwk & { kid: string; alg: 'ES256'; use: 'sig' };

export interface NewSigningKey {
  kid: string;
  publicJwk: PublicJwk;
  privateKeySealed: string;
}

const generate = promisify(generateKeyPair);

/** A new ES256 key, its private part (PKCS#8 PEM) sealed for this very key id. */
export async function generateSigningKey(masterKeys: MasterKeys): Promise<NewSigningKey> {
  const { publicKey, privateKey } = await generate('ec', { namedCurve: 'P-256' });
  const { x, y } = publicKey.export({ format: 'jwk' }) as { x: string; y: string };
  const publicJwk: PublicJwk = { kty: 'EC', crv: 'P-256', x, y };
  const kid = thumbprint(publicJwk);
  const pem = privateKey.export({ format: 'pem', type: 'pkcs8' }) as string;
  return { kid, publicJwk, privateKeySealed: seal(masterKeys, pem, contextOf(kid)) };
}

/** @throws Error when the box was altered or its master key is not configured. */
export function openSigningKey(masterKeys: MasterKeys, kid: string, privateKeySealed: string): KeyObject {
  return createPrivateKey(open(masterKeys, privateKeySealed, contextOf(kid)));
}

/** What verifiers may know. */
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
