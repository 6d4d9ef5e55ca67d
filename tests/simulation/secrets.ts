import { generateKeyPairSync } from 'node:crypto';
import { parseMasterKeys } from '@callplane/core';

export const MASTER_KEYS = parseMasterKeys([`k1:${Buffer.alloc(32, 7).toString('base64')}`]);
/** Tokens are signed, but no check reads the signature, which is random. */
export const SIGNER = { kid: 'simulated', privateKey: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey };
