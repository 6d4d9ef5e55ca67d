import { generateKeyPairSync } from 'node:crypto';
import { parseMasterKeys } from '@callplane/core';

export const MASTER_KEYS = parseMasterKeys([`k1:${Buffer.alloc(32, 7).toString('base64')}`]);
const PAIR = generateKeyPairSync('ec', { namedCurve: 'P-256' });
/** Tokens have random signatures of one length. */
export const SIGNER = { kid: 'simulated', privateKey: PAIR.privateKey };
export const PUBLIC_KEY = PAIR.publicKey;
export const TOKENS = { issuer: 'callplane', audience: 'callplane' };
