import type { TrackReference } from '../protocol.generated.js';
import type { Participant } from '../remote/participant.js';
import type { Refusal } from './frame-keys.js';
import type { Cipher } from './sframe.js';

/** At least 16 random bytes, or those as base64url. No password: the server could try all likely ones. */
export type EncryptionKey = string | Uint8Array;

export interface ProvidedKey {
  key: EncryptionKey;
  /** From 0 to 15; default 0. All participants give a key the same id. */
  keyId?: number;
}

/** How media and messages are encrypted end to end. Give a `key` or a `keyProvider`. */
export interface EncryptionOptions extends Partial<ProvidedKey> {
  /**
   * Called before the join with undefined, and with the id of a key that others use and this participant lacks, at most
   * once a second. A rejection of the first call rejects `connect()`.
   */
  keyProvider?: (keyId: number | undefined) => Promise<ProvidedKey>;
  /** All participants use the same; default `AES-GCM-256`. */
  cipher?: Cipher;
  /** Opens the worker `encryption-worker.js` of this package if the page has it elsewhere than the bundler puts it. */
  worker?: () => Worker;
}

/** The key of a call, as of one moment. */
export interface CallEncryption {
  /** Id of the key that encrypts what you send. */
  readonly keyId: number;
  /** 24 digits of the key. People who read the same ones to each other have the same key. */
  readonly fingerprint: string;
  /**
   * Takes another key. Everybody who stays calls it with the same one; somebody who left does not learn it.
   * @param options.keyId default: the next one
   * @param options.delayMs how long you still send with the key before, so that the others have the new one; default
   *   1000, and less if another participant begins earlier
   */
  readonly rotate: (key: EncryptionKey, options?: { keyId?: number; delayMs?: number }) => Promise<void>;
  /**
   * Takes the key that follows from the present one, and the others follow. Who joins with it cannot decrypt the past;
   * who had a key before can compute all later ones.
   * @returns the key for participants who join from now on
   */
  readonly ratchet: () => Promise<{ key: string; keyId: number }>;
}

/** Media or a message that cannot be decrypted. It is neither played nor shown. */
export interface EncryptionError extends Partial<TrackReference> {
  participant: Participant | undefined;
  participantId: string;
  reason: Refusal;
}
