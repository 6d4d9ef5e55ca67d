import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

const FORMAT = 's1';
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** The first one seals and all of them open, so that a new key can be added in front of the old one. */
export interface MasterKeys {
  readonly sealWith: string;
  readonly keys: ReadonlyMap<string, Buffer>;
}

/**
 * Parses `k2:<base64 of 32 bytes>,k1:<base64 of 32 bytes>`.
 * @throws Error that names the entry by its position, never its value.
 */
export function parseMasterKeys(entries: readonly string[]): MasterKeys {
  const keys = new Map<string, Buffer>();
  for (const [index, entry] of entries.entries()) {
    const [, id, encoded] = /^([A-Za-z0-9_-]{1,32}):([A-Za-z0-9+/]{43}=)$/.exec(entry) ?? [];
    if (id === undefined || encoded === undefined) {
      throw new Error(`entry ${index + 1} is not "<id>:<base64 of 32 bytes>" (openssl rand -base64 32)`);
    }
    if (keys.has(id)) throw new Error(`entry ${index + 1} repeats the key id "${id}"`);
    keys.set(id, Buffer.from(encoded, 'base64'));
  }
  const [sealWith] = keys.keys();
  if (sealWith === undefined) throw new Error('at least one key is needed');
  return { sealWith, keys };
}

/**
 * Seals with AES-256-GCM: `s1.<key id>.<base64url of IV, ciphertext and tag>`.
 * @param context the owner of the secret (`signing-key:<kid>`). It is authenticated, so a sealed text cannot be moved
 * to another owner.
 */
export function seal(masterKeys: MasterKeys, plaintext: string, context: string): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv('aes-256-gcm', keyOf(masterKeys, masterKeys.sealWith), iv);
  cipher.setAAD(Buffer.from(context));
  const box = Buffer.concat([iv, cipher.update(plaintext, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  return `${FORMAT}.${masterKeys.sealWith}.${box.toString('base64url')}`;
}

/** @throws Error when the sealed text was altered, belongs to another context, or its master key is not configured. */
export function open(masterKeys: MasterKeys, sealed: string, context: string): string {
  const [format, keyId, body] = sealed.split('.');
  if (format !== FORMAT || keyId === undefined || body === undefined) throw new Error('not a sealed secret');
  const box = Buffer.from(body, 'base64url');
  const decipher = createDecipheriv('aes-256-gcm', keyOf(masterKeys, keyId), box.subarray(0, IV_BYTES), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(Buffer.from(context));
  decipher.setAuthTag(box.subarray(-TAG_BYTES));
  return decipher.update(box.subarray(IV_BYTES, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8');
}

function keyOf(masterKeys: MasterKeys, id: string): Buffer {
  const key = masterKeys.keys.get(id);
  if (key === undefined) throw new Error(`master key "${id}" is not configured (ENCRYPTION_KEYS)`);
  return key;
}
